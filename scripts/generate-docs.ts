/** `npm run docs`: writes the generated parts of README.md, docs/tools.md and .env.example; `--check` only says what is stale. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CONFIG_VARIABLES } from '../schemas/config-variables.js'
import { tools } from '../tools/index.js'
import { replaceSection } from './docs/markdown.js'
import { renderEnvironmentFile, renderEnvironmentTable } from './docs/render-environment.js'
import { renderToolPage, renderToolTable } from './docs/render-tools.js'
import { syncFiles } from './sync-files.js'

const TOOL_PAGE = 'docs/tools.md'

const root = fileURLToPath(new URL('..', import.meta.url))
const withTools = replaceSection(
  readFileSync(join(root, 'README.md'), 'utf8'),
  'tools',
  renderToolTable(tools, TOOL_PAGE),
)
const wanted = new Map([
  ['README.md', replaceSection(withTools, 'env', renderEnvironmentTable(CONFIG_VARIABLES))],
  [TOOL_PAGE, renderToolPage(tools)],
  ['.env.example', renderEnvironmentFile(CONFIG_VARIABLES)],
])
const fine = syncFiles(wanted, { root, check: process.argv.includes('--check'), command: '`npm run docs`' })
process.exit(fine ? 0 : 1)
