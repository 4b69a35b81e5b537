/**
 * `node scripts/undo-fixes.mjs [--at REV] [COMMIT …]` tests whether the suite still notices bugs that were fixed. For
 * each commit (by default the thirty of FIXES) it copies the project at REV (default HEAD), undoes the commit's changes
 * to shipped code, and runs the tests of the rooms to which the commit's own tests belong. It prints one line each:
 * `caught` with the failed test files, `MISSED`, or `gone` if the code has changed so much that the commit cannot be
 * undone any more. Exits with 1 if a bug was missed.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/** Thirty fixes of shipped code, spread over the rooms. */
const FIXES = [
  'acd2d2d', // audit: pipes, forced exits
  '5d8ab95', // enforcement: what reads back in the mode is changed
  '114eafb', // http: a batch at the pace of a slow client
  '7b90146', // pictures: 1 MiB of a page
  '637f4ab', // history: what stayed pending was not discarded
  'cf2ad5c', // hygiene: blank first line of a CSV text
  '86ae83b', // tools: a part of a list is not the whole
  '56fd155', // readiness: the uncovered applications call in
  'e789fd9', // explain: an IP list without an address
  '53b1e6b', // suggest-rule: by_workload
  '0196e0c', // suggest-rule: a lower bound is said to be one
  'f6dc274', // auth: groups that are elsewhere
  '3df3565', // config: blank fields of a form
  '25b6b28', // hygiene: strong evidence first
  '8e0b7e6', // delete-iplist: a dry run says who uses it
  'b3160a6', // find-redundant-rules: disabled rules are counted
  'ecfac2a', // dispatcher: bounds are told beside alternatives
  '284dbd5', // find-rules: an end that has the workload by its address
  '15a9a6c', // explain: port 0
  'b2cdcce', // policy: why the effect of a rule is another
  'e98e147', // history: one neutral change
  '137d030', // approve: the next login leads back
  'b4e281e', // pages: a session is of its server
  'c4e8121', // config: an unescaped @ in a password
  'b231ff9', // knowledge: a URI with a value missing
  'f1e468a', // pce-client: large answers share the turns
  'f056bb8', // confirm: an answer without a number
  'aeac0d8', // state: permissions of a file that is not ours
  '26558d7', // tools: a provisioning with an unreadable answer
  '1883194', // mcp: a last line without its line feed
]
/** Everything that is not shipped stays as it is, so that today's tests decide. */
const KEPT = ['test', 'docs', 'scripts', 'deploy', 'skills', '.ci', 'package.json', 'package-lock.json']
const TEST = /^test\/.*\.(test|long)\.ts$/

const root = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals } = parseArgs({
  options: { at: { type: 'string', default: 'HEAD' } },
  allowPositionals: true,
})
const copy = join(mkdtempSync(join(tmpdir(), 'svc-mcp-undo-')), 'project')
git(root, 'worktree', 'add', '--quiet', '--detach', copy, values.at)
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
let missed = 0
try {
  for (const commit of positionals.length > 0 ? positionals : FIXES) {
    const [word, detail] = undo(commit) ? judge(commit) : ['gone', '']
    if (word === 'MISSED') missed += 1
    console.log(`${word.padEnd(6)}  ${git(root, 'log', '-1', '--format=%h %s', commit).trim()}${detail}`)
    git(copy, 'reset', '--quiet', '--hard')
    git(copy, 'clean', '--quiet', '-fd', '-e', 'node_modules')
  }
} finally {
  git(root, 'worktree', 'remove', '--force', copy)
  rmSync(join(copy, '..'), { recursive: true, force: true })
}
process.exit(missed === 0 ? 0 : 1)

/**
 * Undoes the commit's changes to shipped code in the copy, and returns whether that was possible. git follows files
 * that have since been moved. Where lines beside a change are no longer the same, such as a comment, those from before
 * the commit are taken; the result counts if it still compiles.
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

/**
 * Runs the test files that the commit changed, and for a file that no longer exists those of its room, until one fails.
 */
function judge(commit) {
  const touched = git(root, 'show', '--name-only', '--format=', commit).split('\n')
  const tests = touched
    .filter((path) => TEST.test(path))
    .map((path) => (existsSync(join(copy, path)) ? path : dirname(path)))
  const red = [...new Set(tests)].find((path) => run('npm', copy, 'test', '--silent', '--', path).status !== 0)
  return red === undefined ? ['MISSED', `\n        ${tests.join(' ')}`] : ['caught', `\n        ${red}`]
}

function run(program, cwd, ...args) {
  return spawnSync(program, args, { cwd, encoding: 'utf8', maxBuffer: 2 ** 28 })
}

function git(cwd, ...args) {
  const { status, stdout, stderr } = run('git', cwd, ...args)
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`)
  return stdout
}
