/** `npm run boundaries`: checks the walls between the rooms (scripts/boundaries/rooms.ts). Exits 1 and names each import that crosses one. */
import { fileURLToPath } from 'node:url'
import { checkBoundaries, renderViolation } from './boundaries/check.js'
import { readTree } from './boundaries/read-tree.js'

const root = process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url))
const sources = readTree(root)
const violations = checkBoundaries(sources)
for (const violation of violations) console.error(renderViolation(violation))
console.log(`files: ${sources.length}, violations of the walls: ${violations.length}`)
process.exit(violations.length === 0 ? 0 : 1)
