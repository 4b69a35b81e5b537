import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { KINDS } from '../../pce-client/kinds.js'
import { ERROR_TABLE } from '../../plugins/errors/table.js'
import { CONFIG_VARIABLES } from '../docs/config-variables.js'
import { SKILLS } from '../docs/skills.js'
import { ScopesFile } from '../../schemas/scopes.js'
import { tools } from '../../tools/index.js'
import { CITED_PAGES, definedNumbers, findBrokenLinks, findDangling } from '../docs/check-citations.js'
import { findUntestedCommands } from '../docs/find-commands.js'
import { readResults } from '../clients/results.js'
import { replaceSection } from '../docs/markdown.js'
import { renderInstallButtons } from '../docs/render-buttons.js'
import { parseFolder } from '../docs/read-interfaces.js'
import { renderDecisionIndex } from '../docs/render-decisions.js'
import { renderClientSections } from '../docs/render-client.js'
import { renderErrorTables } from '../docs/render-errors.js'
import { renderEnvironmentFile, renderEnvironmentTable, renderTracingTable } from '../docs/render-environment.js'
import { renderSkill } from '../docs/render-skill.js'
import { renderToolPage, renderToolsetTable } from '../docs/render-tools.js'
import { renderTriedClients } from '../docs/render-tried-clients.js'
import { renderVocabulary } from '../docs/render-vocabulary.js'
import { renderManifest, type ProjectFacts } from '../release/manifest.js'
import { renderServerJson } from '../release/server-json.js'
import type { Generator } from './generator.js'

const TOOL_PAGE = 'docs/tools.md'
const VOCABULARY_PAGE = 'docs/vocabulary.md'
const README = 'README.md'
const CLIENT_PAGE = 'docs/pce-client.md'
const CONFIGURATION_PAGE = 'docs/configuration.md'
const OPERATIONS_PAGE = 'docs/operations.md'
const CLIENTS_PAGE = 'docs/clients/README.md'
const DECISIONS_PAGE = 'docs/decisions.md'
const SCOPES_SCHEMA = 'docs/scopes.schema.json'
const SKILL_FOLDER = 'skills'
const NOT_OURS = new Set(['node_modules', 'dist', 'test-artifacts', 'snapshots'])

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/**
 * Generates parts of the documents, and files that are based on the same facts. It reports these problems: comments
 * that cite a decision or fact that no page defines, links that lead nowhere, and commands on a page that no test runs.
 */
export const documents: Generator = {
  folders: [SKILL_FOLDER],
  files: render,
  problems: findProblems,
}

function render(): Map<string, string> {
  const project = JSON.parse(read('package.json')) as ProjectFacts
  const clientSections = renderClientSections(KINDS, parseFolder(join(root, 'pce-client')))
  return new Map([
    [TOOL_PAGE, renderToolPage(tools)],
    [SCOPES_SCHEMA, renderScopesSchema()],
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
      Object.entries({
        env: renderEnvironmentTable(CONFIG_VARIABLES),
        toolsets: renderToolsetTable(tools),
        traces: renderTracingTable(),
      }).reduce((page, [name, content]) => replaceSection(page, name, content), read(CONFIGURATION_PAGE)),
    ],
    [OPERATIONS_PAGE, replaceSection(read(OPERATIONS_PAGE), 'errors', renderErrorTables(ERROR_TABLE))],
    [
      DECISIONS_PAGE,
      replaceSection(read(DECISIONS_PAGE), 'decisions-by-subject', renderDecisionIndex(read(DECISIONS_PAGE))),
    ],
    [CLIENTS_PAGE, replaceSection(read(CLIENTS_PAGE), 'tried', renderTriedClients(readResults()))],
    ['deploy/mcp-registry/server.json', renderServerJson(project)],
    ['deploy/claude-desktop/manifest.json', renderManifest(project)],
    ['.env.example', renderEnvironmentFile(CONFIG_VARIABLES)],
    ...SKILLS.flatMap((skill) => [...renderSkill(skill, tools, (path) => read(join('knowledge', path)))]),
  ])
}

/** Renders the JSON Schema of MCP_SCOPES_FILE. */
const renderScopesSchema = () =>
  `${JSON.stringify({ $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'MCP_SCOPES_FILE', ...ScopesFile }, null, 2)}\n`

function findProblems(): string[] {
  const sources = sourcesBelow('')
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const dangling = findDangling(sources, definedNumbers(CITED_PAGES.map(read)))
  const broken = findBrokenLinks(sources, (path) => existsSync(join(root, path)))
  return [
    ...dangling.map((citation) => `${citation} is cited and defined nowhere in ${CITED_PAGES.join(', ')}`),
    ...broken.map((link) => `${link} does not exist`),
    ...findUntestedCommands(sources, new Set(Object.keys(scripts))),
  ]
}

/** Reads every text that may contain citations, by its path below the root. */
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
