import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The facts about the server in its package.json, and the changelog in the same folder. */
export interface PackageFacts {
  name: string
  version: string
  /** Returns the text of CHANGELOG.md, or null if it was not shipped. The file is read only once. */
  changelog(): Promise<string | null>
}

/**
 * Reads package.json. The search begins in the folder of this module and goes upwards, because the module is run both
 * in the sources and in dist. Throws Error if there is no package.json.
 */
export function readPackage(): PackageFacts {
  const root = findRoot(dirname(fileURLToPath(import.meta.url)))
  const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    name: string
    version: string
  }
  let changelog: Promise<string | null> | undefined
  return {
    name,
    version,
    changelog: () => (changelog ??= readFile(join(root, 'CHANGELOG.md'), 'utf8').catch(() => null)),
  }
}

function findRoot(folder: string): string {
  try {
    readFileSync(join(folder, 'package.json'))
    return folder
  } catch (error) {
    const parent = dirname(folder)
    if (parent === folder) throw error
    return findRoot(parent)
  }
}
