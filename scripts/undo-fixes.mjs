/**
 * `node scripts/undo-fixes.mjs [--at REV] [COMMIT …]`: whether the suite still notices faults that were once mended. For each commit (by
 * default the thirty of FIXES) it makes a copy of the project at REV (default HEAD), undoes what the commit did to shipped code, runs the
 * tests of the rooms that the commit's own tests are in, and prints one line: `caught` with the test files that failed, `MISSED`, or
 * `gone` where the code has moved on so far that the commit can no longer be undone. Exits with 1 where a fault is missed.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/** Thirty fixes of shipped code, spread over the rooms and the bounds. */
const FIXES = [
  'acd2d2d', // audit: pipes, forced exits
  '5015282', // http: Connection: close while closing
  'd4d0341', // postgres: a crowd is no outage
  '5d8ab95', // enforcement: what reads back in the mode is changed
  '7b90146', // pictures: 1 MiB of a page
  '637f4ab', // history: what stayed pending was not discarded
  'cf2ad5c', // hygiene: blank first line of a CSV text
  '86ae83b', // tools: a part of a list is not the whole
  '024d897', // state: no transaction is left open
  'f0f41f4', // auth: 503 where keys are an hour old
  'e789fd9', // explain: an IP list without an address
  '53b1e6b', // suggest-rule: by_workload
  '7854719', // suggest-rule: an address counts once
  '3df3565', // config: blank fields of a form
  'bdfd885', // tools: host names where nothing has the name
  'ecfac2a', // dispatcher: bounds are told beside alternatives
  'e98e147', // history: one neutral change
  '724732d', // approval: an exclusion that is none
  '8961330', // approval: questions that are pushed out
  'b4e281e', // pages: a session is of its server
  '4a3ca30', // mcp: headers against an older request
  '9b28999', // state: move-state holds the lock
  'd8021de', // answers: hrefs where the contract names them
  'b60d99b', // get-rulesets: a shared name is shown with its href
  'f5ec97d', // traffic: rows that a network filter leaves out
  '3b97c83', // heavy: a redeemed token is never busy
  'aa3395c', // config: unknown tools in one list
  '455292c', // traffic: an empty window has no time of 1970
  '4d12aa3', // pce-client: a result without a flow is invalid
  '2598db6', // ringfence: bound to every rule
]
/** What is not shipped stays as it is, so that today's tests judge. */
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

/** Whether what the commit did to shipped code could be undone in the copy; git follows files that have moved since. */
function undo(commit) {
  run('git', copy, 'revert', '--no-commit', commit)
  for (const path of KEPT) run('git', copy, 'checkout', '--quiet', 'HEAD', '--', path)
  const changed = git(copy, 'status', '--porcelain')
    .split('\n')
    .filter((line) => /\.ts$/.test(line))
  return changed.length > 0 && changed.every((line) => !/^(U.|.U|AA|DD)/.test(line))
}

/** Runs the test files that the commit touched and that are still there, one after the other until one fails. */
function judge(commit) {
  const touched = git(root, 'show', '--name-only', '--format=', commit).split('\n')
  const tests = touched.filter((path) => TEST.test(path) && existsSync(join(copy, path)))
  const red = tests.find((path) => run('npm', copy, 'test', '--silent', '--', path).status !== 0)
  if (red !== undefined) return ['caught', `\n        ${red}`]
  return ['MISSED', tests.length === 0 ? '\n        none of its test files is left' : `\n        ${tests.join(' ')}`]
}

function run(program, cwd, ...args) {
  return spawnSync(program, args, { cwd, encoding: 'utf8', maxBuffer: 2 ** 28 })
}

function git(cwd, ...args) {
  const { status, stdout, stderr } = run('git', cwd, ...args)
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`)
  return stdout
}
