/**
 * `node scripts/undo-fixes.mjs [--at REV] [COMMIT …]` tests whether the suite still notices bugs that were fixed. It
 * works in a copy of the project at REV (default HEAD), for each commit (by default the thirty in FIXES). It runs the
 * test files that the commit changed, in their version at REV. Then it undoes the commit's changes to shipped code, and
 * runs the same files again until one fails. If a file no longer exists, it runs the slow test file of the same name
 * or, if there is none, the folder that contained the file. For each commit, it prints one line: `caught` with the file
 * or folder that failed, `MISSED`, `red` if a test failed before anything was undone, `gone` if the code has changed so
 * much that the commit can no longer be undone, or `no tests` if there is nothing to run. The exit code is 1 unless all
 * commits are `caught` or `gone`.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/** Thirty fixes of shipped code from all rooms. */
const FIXES = [
  'acd2d2d', // audit: pipes, forced exits
  '5015282', // http: the header Connection: close while the server is closing
  'd4d0341', // postgres: waiting for a connection is no outage
  '5d8ab95', // enforcement: a workload that reads back in the new mode counts as changed
  '7b90146', // pictures: a page is at most 1 MiB
  '637f4ab', // history: changes that stayed pending are not reported as discarded
  'cf2ad5c', // hygiene: a blank first line of a CSV text
  '86ae83b', // tools: a part of a list is not taken for the whole list
  '024d897', // state: no transaction is left open
  'f0f41f4', // auth: status 503 if the keys are an hour old
  'e789fd9', // explain: an IP list without an address is said to have none
  '53b1e6b', // suggest-rule: by_workload suggests a rule between two workloads or none
  '7854719', // suggest-rule: an address is not counted twice
  '3df3565', // config: blank fields of a form
  'ecfac2a', // dispatcher: bounds of a number are named beside other alternatives
  'e98e147', // history: a single neutral change permits nothing
  '724732d', // approval: an exclusion that excludes nothing is not shown as a change
  'b4e281e', // pages: a session belongs to the server at which it began
  '4a3ca30', // mcp: new headers are compared with an older request too
  '9b28999', // state: move-state holds the lock of the file
  'd8021de', // answers: hrefs are kept where the contract names them
  'b60d99b', // get-rulesets: a shared name is shown with its href
  'f5ec97d', // traffic: rows that a network filter leaves out
  '3b97c83', // heavy: a call with a redeemed token is never refused as busy
  '455292c', // traffic: an empty window shows no time of 1970
  '4d12aa3', // pce-client: a result without a flow is invalid
  '2598db6', // ringfence: a confirmation is bound to every rule
  '0196e0c', // suggest-rule: a lower bound is called a lower bound
  '25b6b28', // hygiene: strong evidence comes first
  'c4e8121', // config: an unescaped @ in a password of a URL
]
/** The tests for fixes that changed no tests, or whose tests have been moved. */
const TESTS = {
  '024d897': ['test/state/state-file.test.ts'],
  5015282: ['test/contract/tool-calls.test.ts'],
  d4d0341: ['test/postgres/database.edge.ts'],
  f5ec97d: ['test/tools/complete-answers.long.ts'],
}
/** The paths at which changes are not undone. They are not shipped, so the current tests are used. */
const KEPT = ['test', 'docs', 'scripts', 'deploy', 'skills', '.ci', 'package.json', 'package-lock.json']
/**
 * The folders of installed packages that the copy shares with this project. `.ci/install-packages` installs the
 * packages for the tests on PostgreSQL.
 */
const PACKAGES = ['node_modules', 'test/postgres/node_modules']
const TEST = /\.(test|long|edge)\.ts$/

const root = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals } = parseArgs({
  options: { at: { type: 'string', default: 'HEAD' } },
  allowPositionals: true,
})
const folder = mkdtempSync(join(tmpdir(), 'svc-mcp-undo-'))
// Other users must be able to read the program files, because some tests start programs as another user.
chmodSync(folder, 0o755)
const copy = join(folder, 'project')
git(root, 'worktree', 'add', '--quiet', '--detach', copy, values.at)
for (const packages of PACKAGES.filter((path) => existsSync(join(root, path))))
  symlinkSync(join(root, packages), join(copy, packages))
const green = new Set()
let failures = 0
try {
  for (const commit of positionals.length > 0 ? positionals : FIXES) {
    const [word, detail] = judge(commit)
    if (word !== 'caught' && word !== 'gone') failures += 1
    console.log(`${word.padEnd(8)}  ${git(root, 'log', '-1', '--format=%h %s', commit).trim()}${detail}`)
    git(copy, 'reset', '--quiet', '--hard')
    git(copy, 'clean', '--quiet', '-fd', '-e', 'node_modules')
  }
} finally {
  git(root, 'worktree', 'remove', '--force', copy)
  rmSync(folder, { recursive: true, force: true })
}
process.exit(failures === 0 ? 0 : 1)

/**
 * Undoes the commit's changes to shipped code in the copy, and returns true if that was possible. git finds files that
 * have been moved since. If lines next to a change, such as a comment, have changed since, the lines from before the
 * commit are used; the result is accepted if it compiles.
 */
function undo(commit) {
  run('git', copy, 'revert', '--no-commit', '--strategy-option=theirs', commit)
  for (const path of KEPT) run('git', copy, 'checkout', '--quiet', 'HEAD', '--', path)
  const changed = git(copy, 'status', '--porcelain')
    .split('\n')
    .filter((line) => /\.ts$/.test(line))
  return changed.length > 0 && changed.every((line) => !/^(U.|.U|AA|DD)/.test(line)) && compiles()
}

function compiles() {
  const incremental = ['--incremental', '--tsBuildInfoFile', join(copy, '../types.tsbuildinfo')]
  return (
    run('npx', copy, 'tsc', '-p', 'tsconfig.json', '--noEmit', '--noUnusedLocals', 'false', ...incremental).status === 0
  )
}

function judge(commit) {
  const tests = testsOf(commit)
  if (tests.length === 0) return ['no tests', '']
  const wasRed = tests.filter((path) => !green.has(path)).find(fails)
  if (wasRed !== undefined) return ['red', `\n          ${wasRed}`]
  for (const path of tests) green.add(path)
  if (!undo(commit)) return ['gone', '']
  const red = tests.find(fails)
  return red === undefined ? ['MISSED', `\n          ${tests.join(' ')}`] : ['caught', `\n          ${red}`]
}

/**
 * Returns the test files to run for a commit. For a file that no longer exists, or that only contains helpers for
 * tests, returns its folder.
 */
function testsOf(commit) {
  const touched = git(root, 'show', '--name-only', '--format=', commit).split('\n')
  const tests = touched
    .filter((path) => /^test\/.*\.ts$/.test(path))
    .map((path) => {
      const versions = [path, path.replace(TEST, '.long.ts')].filter((one) => TEST.test(one))
      return versions.find((one) => existsSync(join(copy, one))) ?? dirname(path)
    })
  return [...new Set([...tests, ...(TESTS[commit] ?? [])])].filter((path) => existsSync(join(copy, path)))
}

function fails(path) {
  return run('npm', copy, 'test', '--silent', '--', path).status !== 0
}

function run(program, cwd, ...args) {
  return spawnSync(program, args, { cwd, encoding: 'utf8', maxBuffer: 2 ** 28 })
}

function git(cwd, ...args) {
  const { status, stdout, stderr } = run('git', cwd, ...args)
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`)
  return stdout
}
