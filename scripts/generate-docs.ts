/**
 * `npm run docs`: writes the generated parts of README.md, docs/tools.md, docs/pce-client.md and .env.example; `--check` only
 * says what is stale.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { KINDS } from '../pce-client/kinds.js'
import { CONFIG_VARIABLES } from '../schemas/config-variables.js'
import { tools } from '../tools/index.js'
import { replaceSection } from './docs/markdown.js'
import { parseFolder } from './docs/read-interfaces.js'
import { renderClientSections } from './docs/render-client.js'
import { renderEnvironmentFile, renderEnvironmentTable } from './docs/render-environment.js'
import { renderToolPage, renderToolTable } from './docs/render-tools.js'
import { syncFiles } from './sync-files.js'

const TOOL_PAGE = 'docs/tools.md'
const CLIENT_PAGE = 'docs/pce-client.md'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const withTools = replaceSection(read('README.md'), 'tools', renderToolTable(tools, TOOL_PAGE))
const clientSections = renderClientSections(KINDS, parseFolder(join(root, 'pce-client')))
const wanted = new Map([
  ['README.md', replaceSection(withTools, 'env', renderEnvironmentTable(CONFIG_VARIABLES))],
  [TOOL_PAGE, renderToolPage(tools)],
  [
    CLIENT_PAGE,
    Object.entries(clientSections).reduce(
      (page, [name, content]) => replaceSection(page, name, content),
      read(CLIENT_PAGE),
    ),
  ],
  ['.env.example', renderEnvironmentFile(CONFIG_VARIABLES)],
])
const fine = syncFiles(wanted, { root, check: process.argv.includes('--check'), command: '`npm run docs`' })
process.exit(fine ? 0 : 1)
