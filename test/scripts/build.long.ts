/** What `npm run build` promises to whoever runs programs from dist/, and to the package. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ASK_RELEASES, makeProject } from './build-project.js'

/**
 * Notes before each change to the disk what each way into dist/ leads to: a process that is killed there leaves exactly this. It kills
 * itself when it is about to make change number KILL_AT. The notes are in LOOKS at the end.
 */
const WATCH_CHANGES = `
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
const { writeFileSync } = fs
const { KILL_AT, LOOKS } = process.env
const looks = []
let changes = 0
for (const name of ['mkdirSync', 'writeFileSync', 'chmodSync', 'cpSync', 'renameSync', 'rmSync', 'utimesSync']) {
  const real = fs[name]
  fs[name] = (...args) => {
    changes += 1
    if (changes === Number(KILL_AT)) process.kill(process.pid, 'SIGKILL')
    if (LOOKS) looks.push(spawnSync(process.execPath, ${JSON.stringify(ASK_RELEASES)}, { encoding: 'utf8', input: '' }).stdout)
    return real(...args)
  }
}
syncBuiltinESMExports()
if (LOOKS) process.on('exit', () => writeFileSync(LOOKS, JSON.stringify(looks)))
`

t.test('a build', async (t) => {
  const project = makeProject(t)
  const at = (...names: string[]) => join(project.dir, 'dist', ...names)
  const builds = () => readdirSync(at()).filter((name) => /^[\da-f]{12}$/.test(name))

  const first = project.build()
  t.same([first.status, first.said.replace(/[\d.]+ s/, 'N s')], [0, 'Building …\nBuilt in N s.\n'])
  t.same(project.releases(), ['one', 'one', 'one'])
  t.equal(existsSync(at(builds()[0]!, 'pce-client', 'index.d.ts')), true, 'with the types of the client')
  t.equal(existsSync(at(builds()[0]!, 'domain/traffic/providers/provider-ranges.json')), true, 'with its data')

  await t.test('is skipped while it is current', async (t) => {
    t.same(project.build(), { status: 0, signal: null, said: `dist/ is current (${builds()[0]}).\n` })
  })

  await t.test('replaces what new programs run, and leaves running ones what they load later', async (t) => {
    const running = await project.start()
    project.release('two')
    t.equal(project.build().status, 0)
    t.same(project.releases(), ['two', 'two', 'two'])
    t.same([running.early, await running.late()], ['one', 'one'])
  })

  await t.test('is packed alone, and made by packing', async (t) => {
    project.release('three')
    const { status, stdout, stderr } = spawnSync('npm', ['pack', '--dry-run', '--json'], {
      cwd: project.dir,
      encoding: 'utf8',
    })
    t.equal(status, 0, stderr)
    t.same(project.releases(), ['three', 'three', 'three'])
    const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }]
    const [, current] = /'\.\/(\w+)\//.exec(readFileSync(at('stdio.js'), 'utf8'))!
    t.same(
      files.map(({ path }) => path.replace(`dist/${current}/`, 'CURRENT/')).sort(),
      [
        'CURRENT/domain/traffic/providers/provider-ranges.json',
        'CURRENT/knowledge/documents/one.md',
        ...['js', 'd.ts'].map((kind) => `CURRENT/pce-client/index.${kind}`),
        'CURRENT/pce-simulator/pce-sim.js',
        'CURRENT/pictures/generated/app.js',
        'CURRENT/pictures/generated/page.js',
        ...readdirSync(at(current!, 'parts')).map((name) => `CURRENT/parts/${name}`),
        ...['http', 'stdio', 'worker'].map((name) => `CURRENT/${name}.js`),
        'CURRENT/tools/release.d.ts',
        ...['js', 'd.ts'].map((kind) => `dist/pce-client/index.${kind}`),
        ...['dist/pce-simulator/pce-sim.js', 'dist/stdio.js', 'package.json'],
      ].sort(),
    )
  })

  await t.test('does not mind another one at the same time', async (t) => {
    project.release('four')
    const both = [1, 2].map(() => spawn(process.execPath, ['scripts/build.mjs'], { cwd: project.dir, stdio: 'ignore' }))
    const codes = await Promise.all(both.map(async (child) => ((await once(child, 'exit')) as [number])[0]))
    t.same(codes, [0, 0])
    t.same(project.releases(), ['four', 'four', 'four'])
    t.same(
      readdirSync(at()).filter((name) => name.startsWith('.unfinished')),
      [],
    )
  })

  await t.test('stays a week after it was replaced, and what a dead build has left goes at once', async (t) => {
    const [, current] = /'\.\/(\w+)\//.exec(readFileSync(at('stdio.js'), 'utf8'))!
    const [old, recent, ...rest] = builds().filter((name) => name !== current)
    for (const name of rest) rmSync(at(name), { recursive: true })
    const days = (count: number) => new Date(Date.now() - count * 86_400_000)
    utimesSync(at(old!), days(8), days(8))
    utimesSync(at(recent!), days(6), days(6))
    const { pid } = spawnSync('true')
    writeFileSync(at(`.unfinished-${pid}`), '')
    writeFileSync(at(`.unfinished-${process.pid}`), '')
    t.equal(project.build().status, 0)
    t.same(
      readdirSync(at()),
      ['.npmignore', `.unfinished-${process.pid}`, current, recent, 'pce-client', 'pce-simulator', 'stdio.js'].sort(),
    )
  })

  await t.test('that does not check changes nothing', async (t) => {
    const before = readdirSync(at())
    writeFileSync(join(project.dir, 'pce-client/index.ts'), "export const release: number = 'four'\n")
    const { status, said } = project.build()
    t.equal(status, 2)
    t.match(said, /pce-client\/index\.ts.*TS2322/)
    t.same(readdirSync(at()), before)
    t.same(project.releases(), ['four', 'four', 'four'])
  })
})

t.test('a build that is killed breaks no program, and the next one is whole', async (t) => {
  const project = makeProject(t)
  const hook = join(project.dir, 'watch-changes.mjs')
  const looks = join(project.dir, 'looks.json')
  writeFileSync(hook, WATCH_CHANGES)
  const build = (env: NodeJS.ProcessEnv) => project.build(['--import', hook], env)
  t.equal(project.build().status, 0)
  project.release('watched')
  t.equal(build({ LOOKS: looks }).status, 0)
  const seen = (JSON.parse(readFileSync(looks, 'utf8')) as string[]).map((said) => said.trim().split('\n'))
  // Each of these is a whole build; the doors lead to the new one in turn.
  const states = seen.map((releases) => releases.map((release) => (release === 'watched' ? 'new' : release)).join(' '))
  t.same([...new Set(states)], ['one one one', 'new one one', 'new new one', 'new new new'])
  // The folder is made and named; .npmignore and each way in is written, given its mode and renamed.
  t.equal(seen.length > 20, true, `${seen.length} changes`)

  // A killed build leaves its folder behind: before the new one has its name, while the ways in are replaced, at the end.
  const known = new Set(['watched'])
  for (const change of [5, seen.length - 8, seen.length]) {
    const name = `killed at ${change}`
    project.release(name)
    known.add(name)
    t.equal(build({ KILL_AT: String(change) }).signal, 'SIGKILL', name)
    const strange = project.releases().filter((release) => !known.has(release))
    t.same(strange, [], `${name}: every way in leads to a whole build`)
  }
  project.release('whole')
  t.equal(project.build().status, 0)
  t.same(project.releases(), ['whole', 'whole', 'whole'])
})
