/**
 * `npm run release` makes all files of a release from a tag: the package, the bundle for Claude Desktop, the build
 * context of the image, the SBOM, server.json, the notes, and checksums. All of them are put into one folder. It
 * publishes nothing; docs/releasing.md describes how to do that.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { fileNameOf, hashOf } from './release/files.js'
import { findOpen, findProblems, readNotes } from './release/find-problems.js'
import { listContext } from './release/list-context.js'
import { makeBundle } from './release/make-bundle.js'
import type { ProjectFacts } from './release/manifest.js'
import { run } from './run-command.js'

const MANIFEST = 'deploy/claude-desktop/manifest.json'
const SERVER_JSON = 'deploy/mcp-registry/server.json'
const CHART = 'deploy/helm/svc-mcp/Chart.yaml'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const git = (...args: string[]) => run('git', args, root).trim()

const program = new Command('npm run release --')
  .description('Make the files of a release from a tag. Nothing is published.')
  .argument('[tag]', 'such as v1.2.3; the tag of HEAD when absent')
  .option('-n, --dry-run', 'make them from the tree as it is, without a tag', false)
  .option('-o, --output <folder>', 'the folder to make', '.release')
  .allowExcessArguments(false)
  .showHelpAfterError('(npm run release -- --help shows its options)')
  .parse()
const { dryRun, output } = program.opts<{ dryRun: boolean; output: string }>()
const project = JSON.parse(read('package.json')) as ProjectFacts
const { name, version } = project
const target = resolve(root, output)

const problems = [
  ...findProblems(readFacts(program.args[0]), dryRun),
  ...(dryRun ? [] : findOpen(project)),
  ...(existsSync(target) ? [`${target} exists: remove it, or give another --output`] : []),
]
if (problems.length > 0) {
  for (const problem of problems) console.error(`refused: ${problem}`)
  process.exit(1)
}

mkdirSync(dirname(target), { recursive: true })
const scratch = mkdtempSync(join(dirname(target), '.release-'))
try {
  await make(scratch)
  renameSync(scratch, target)
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
for (const file of readdirSync(target).sort())
  console.log(`${String(statSync(join(target, file)).size).padStart(9)}  ${file}`)
console.log(`${dryRun ? 'A dry run of' : 'Release'} ${version}: ${target}`)
for (const line of findOpen(project)) console.log(`before it is published: ${line}`)

function readFacts(given: string | undefined) {
  const describe = () => git('describe', '--exact-match', '--tags', 'HEAD')
  const tag = given ?? orNull(describe)
  return {
    tag,
    commits: {
      tag: tag === null ? null : orNull(() => git('rev-parse', '--verify', '--quiet', `refs/tags/${tag}^{commit}`)),
      head: git('rev-parse', 'HEAD'),
    },
    changes: git('status', '--porcelain').split('\n').filter(Boolean),
    versions: {
      'package.json': version,
      'package-lock.json': versionIn('package-lock.json'),
      [SERVER_JSON]: versionIn(SERVER_JSON),
      [MANIFEST]: versionIn(MANIFEST),
      [CHART]: /^appVersion: '?([^'\n]+)/m.exec(read(CHART))?.[1] ?? 'no appVersion',
    },
    changelog: read('CHANGELOG.md'),
  }
}

function orNull<T>(look: () => T): T | null {
  try {
    return look()
  } catch {
    return null
  }
}

function versionIn(path: string): string {
  return (JSON.parse(read(path)) as { version: string }).version
}

async function make(folder: string): Promise<void> {
  const named = (suffix: string) => join(folder, fileNameOf(project, suffix))
  const put = (file: string, text: string) => writeFileSync(join(folder, file), text)
  // `npm pack` also makes the build that it packs.
  run('npm', ['pack', '--silent', '--pack-destination', folder], root)
  await makeBundle(root, named('.tgz'), read(MANIFEST), named('.mcpb'))
  makeContext(named('-image.tar.gz'))
  writeFileSync(named('.cdx.json'), makeSbom())
  put('server.json', read(SERVER_JSON))
  put('RELEASE_NOTES.md', `# ${name} ${version}\n\n${readNotes(read('CHANGELOG.md'), version)}\n`)
  const sums = readdirSync(folder).map((file) => `${hashOf(join(folder, file))}  ${file}\n`)
  put('SHA256SUMS', sums.sort((one, other) => one.slice(66).localeCompare(other.slice(66))).join(''))
}

/** Makes the build context for `docker build`. For the same commit, it is always the same, byte for byte. */
function makeContext(path: string): void {
  const files = listContext(git('ls-files', '-z').split('\0').filter(Boolean), read('.dockerignore'))
  const same = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', '--mode=u+rw,go=rX', '--mtime']
  run('tar', ['-czf', path, ...same, `@${git('log', '-1', '--format=%ct')}`, '--null', '-T', '-'], root, {
    input: files.join('\0'),
  })
}

/**
 * Makes a CycloneDX SBOM of everything that the package needs to run. It is made from a project without development
 * dependencies: in this project, `npm sbom --omit dev` would also omit packages that both the package and its
 * development need, such as the MCP SDK.
 */
function makeSbom(): string {
  const scratch = mkdtempSync(join(tmpdir(), 'svc-mcp-sbom-'))
  // npm names a project after its folder, so the folder has the name of the package.
  const folder = join(scratch, name)
  try {
    mkdirSync(folder, { recursive: true })
    const { scripts: _, devDependencies: __, ...rest } = JSON.parse(read('package.json')) as Record<string, unknown>
    writeFileSync(join(folder, 'package.json'), JSON.stringify(rest))
    writeFileSync(join(folder, 'package-lock.json'), read('package-lock.json'))
    const lock = ['--package-lock-only', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund']
    run('npm', ['install', '--loglevel=error', ...lock], folder)
    const text = run('npm', ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'], folder)
    const bom = JSON.parse(text) as { metadata: { component: { type: string } } }
    bom.metadata.component.type = 'application'
    return `${JSON.stringify(bom, null, 2)}\n`
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
