import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * A script that runs in a browser, as `npm run pictures` has bundled it. Looks for it upwards from this code, which runs from the sources, from
 * dist and inside a bundle. Rejects with Error when it is not there.
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
