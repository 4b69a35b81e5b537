import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * A text of this room, by its path below it (`documents/concepts/labels.md`). Looks for it upwards from this code, which runs from
 * the sources, from dist and inside a bundle. Rejects with Error when it is not there.
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
