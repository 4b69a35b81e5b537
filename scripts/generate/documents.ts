/**
 * `npm run docs`: writes the generated parts of docs/ and the whole of .env.example; `--check` only says what is stale.
 * Either way it fails where a comment cites a decision or fact that no page defines, where a page links to what is not there, and where
 * a page has a command that no test runs.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { KINDS } from '../pce-client/kinds.js'
import { ERROR_TABLE } from '../plugins/errors/table.js'
import { CONFIG_VARIABLES } from './docs/config-variables.js'
import { SKILLS } from './docs/skills.js'
import { tools } from '../tools/index.js'
import { CITED_PAGES, definedNumbers, findBrokenLinks, findDangling } from './docs/check-citations.js'
import { findUntestedCommands } from './docs/find-commands.js'
import { replaceSection } from './docs/markdown.js'
import { renderInstallButtons } from './docs/render-buttons.js'
import { parseFolder } from './docs/read-interfaces.js'
import { renderClientSections } from './docs/render-client.js'
import { renderErrorTables } from './docs/render-errors.js'
import { renderEnvironmentFile, renderEnvironmentTable } from './docs/render-environment.js'
import { renderSkill } from './docs/render-skill.js'
import { renderToolPage, renderToolsetTable } from './docs/render-tools.js'
import { renderVocabulary } from './docs/render-vocabulary.js'
import { renderManifest, type ProjectFacts } from './release/manifest.js'
import { renderServerJson } from './release/server-json.js'
import { syncFiles } from './sync-files.js'

const TOOL_PAGE = 'docs/tools.md'
const VOCABULARY_PAGE = 'docs/vocabulary.md'
const README = 'README.md'
const CLIENT_PAGE = 'docs/pce-client.md'
const CONFIGURATION_PAGE = 'docs/configuration.md'
const OPERATIONS_PAGE = 'docs/operations.md'
const SKILL_FOLDER = 'skills'
const NOT_OURS = new Set(['node_modules', 'dist', 'test-artifacts', 'snapshots'])

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const project = JSON.parse(read('package.json')) as ProjectFacts
const clientSections = renderClientSections(KINDS, parseFolder(join(root, 'pce-client')))
const wanted = new Map([
  [TOOL_PAGE, renderToolPage(tools)],
  [README, replaceSection(read(README), 'install-buttons', renderInstallButtons())],
  [VOCABULARY_PAGE, renderVocabulary(tools)],
  [
    CLIENT_PAGE,
    Object.entries(clientSections).reduce(
      (page, [name, content]) => replaceSection(page, name, content),
      read(CLIENT_PAGE),
    ),
  ],
  [
    CONFIGURATION_PAGE,
    replaceSection(
      replaceSection(read(CONFIGURATION_PAGE), 'env', renderEnvironmentTable(CONFIG_VARIABLES)),
      'toolsets',
      renderToolsetTable(tools),
    ),
  ],
  [OPERATIONS_PAGE, replaceSection(read(OPERATIONS_PAGE), 'errors', renderErrorTables(ERROR_TABLE))],
  ['server.json', renderServerJson(project)],
  ['deploy/claude-desktop/manifest.json', renderManifest(project)],
  ['.env.example', renderEnvironmentFile(CONFIG_VARIABLES)],
  ...SKILLS.flatMap((skill) => [...renderSkill(skill, tools, (path) => read(join('knowledge', path)))]),
])
const surplus = filesBelow(SKILL_FOLDER).filter((path) => !wanted.has(path))
const isFresh = syncFiles(wanted, { root, check: process.argv.includes('--check'), command: '`npm run docs`', surplus })

const sources = sourcesBelow('')
const dangling = findDangling(sources, definedNumbers(CITED_PAGES.map(read)))
for (const citation of dangling) console.error(`${citation} is cited and defined nowhere in ${CITED_PAGES.join(', ')}`)
const broken = findBrokenLinks(sources, (path) => existsSync(join(root, path)))
for (const link of broken) console.error(`${link} does not exist`)
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
const untested = findUntestedCommands(sources, new Set(Object.keys(scripts)))
for (const command of untested) console.error(command)
process.exit(isFresh && dangling.length + broken.length + untested.length === 0 ? 0 : 1)

/** Paths below the root. */
function filesBelow(folder: string): string[] {
  if (!existsSync(join(root, folder))) return []
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesBelow(path) : [path]
  })
}

/** Every text that may cite, by its path below the root. */
function sourcesBelow(folder: string): Map<string, string> {
  const sources = new Map<string, string>()
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory() && !NOT_OURS.has(entry.name) && !entry.name.startsWith('.')) {
      for (const [below, text] of sourcesBelow(path)) sources.set(below, text)
    } else if (entry.isFile() && /\.(?:ts|js|mjs|md)$/.test(entry.name)) sources.set(path, read(path))
  }
  return sources
}
