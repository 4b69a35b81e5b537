import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Reads a text by its path below the folder `knowledge` (such as `documents/concepts/labels.md`). The search for that
 * folder starts in the folder of this code and goes up through its parent folders, because the code may run in the
 * sources, in dist or in a bundle. Rejects with Error if there is no such file.
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
