import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Facts about the server from its package.json, and the changelog beside it. */
export interface PackageFacts {
  name: string
  version: string
  /** The text of CHANGELOG.md, or null if it was not shipped. The file is read only once. */
  changelog(): Promise<string | null>
}

/**
 * Reads the package by searching upwards from this file, which runs both from the sources and from dist. Throws Error
 * if there is no package.
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
