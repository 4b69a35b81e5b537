/**
 * A step of `npm run check`. It checks that the texts in knowledge/ name only what exists, that they have a date, and
 * that all of them are served.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tools } from '../tools/index.js'
import { findKnowledgeProblems } from './docs/find-knowledge-problems.js'

const room = fileURLToPath(new URL('../knowledge', import.meta.url))
const texts = new Map(
  readdirSync(room, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && name.includes(sep))
    .map((name) => [name.split(sep).join('/'), readFileSync(join(room, name), 'utf8')]),
)
const problems = findKnowledgeProblems(texts, tools)
for (const problem of problems) console.error(`knowledge/${problem}`)
process.exit(problems.length === 0 ? 0 : 1)
