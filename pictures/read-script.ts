import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Reads a browser script that `npm run generate` has bundled. The search for the file starts in the folder of this code
 * and goes up through its parent folders, because the code may run in the sources, in dist or in a bundle. Rejects with
 * Error if there is no such file.
 */
export async function readScript(name: 'app' | 'page'): Promise<string> {
  const start = dirname(fileURLToPath(import.meta.url))
  for (let folder = start; ; folder = dirname(folder)) {
    try {
      return await readFile(join(folder, 'pictures', 'generated', `${name}.js`), 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || folder === dirname(folder)) throw error
    }
  }
}
