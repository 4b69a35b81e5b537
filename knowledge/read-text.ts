import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Reads a file by its path below the folder `knowledge`, such as `documents/concepts/labels.md`. That folder is
 * searched for in the folder of this code and then in its parent folders, because the code may run from the sources,
 * from dist or from a bundle. Rejects with Error if there is no such file.
 */
export async function readText(path: string): Promise<string> {
  const start = dirname(fileURLToPath(import.meta.url))
  for (let folder = start; ; folder = dirname(folder)) {
    try {
      return await readFile(join(folder, 'knowledge', path), 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || folder === dirname(folder)) throw error
    }
  }
}
