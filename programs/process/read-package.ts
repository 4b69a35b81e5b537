import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What the server says of itself: from the package.json it was shipped with, and the changelog beside it. */
export interface PackageFacts {
  name: string
  version: string
  /** Text of CHANGELOG.md, or null where it was not shipped. Read once. */
  changelog(): Promise<string | null>
}

/** Looks upwards from this file, since it runs from the sources and from dist. Throws Error when the package is not there. */
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
