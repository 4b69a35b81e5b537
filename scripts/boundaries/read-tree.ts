import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SourceText } from './check.js'

const NOT_OURS = new Set(['node_modules', 'dist'])

/** Every TypeScript and JavaScript file below `root`, with its text; hidden folders, installed packages and the build are left out. */
export function readTree(root: string, below = ''): SourceText[] {
  return readdirSync(join(root, below), { withFileTypes: true }).flatMap((entry) => {
    const path = below === '' ? entry.name : `${below}/${entry.name}`
    if (entry.isDirectory()) return entry.name.startsWith('.') || NOT_OURS.has(entry.name) ? [] : readTree(root, path)
    return /\.[cm]?[jt]s$/.test(entry.name) ? [{ path, text: readFileSync(join(root, path), 'utf8') }] : []
  })
}
