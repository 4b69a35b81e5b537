/** The file of the audit log: nothing is lost when it is moved, cut off, or no file at all (D25). */
import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type AuditLog, createFileAudit } from '../../plugins/dispatcher/audit-log.js'
import { partial } from '../partial.js'
import { compiled } from '../suite-folder.js'

/** Opens a name only, nothing to read or write: Linux has it, Node does not name it. */
const O_PATH = 0x200000

const write = (audit: AuditLog, id: string | number) => audit.write({ call_id: String(id) } as never)
const tick = () => new Promise((resolve) => setImmediate(resolve))
const linesIn = (path: string) =>
  fs
    .readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { call_id?: string; phase?: string; since?: string })
const idsIn = (path: string) => linesIn(path).map(({ call_id }) => call_id)

t.test('a name cannot hide anything in the file, and is read back as it is', async (t) => {
  const path = join(t.testdir(), 'audit.log')
  const audit = createFileAudit(path)
  const id = 'pay\u2028\u2029\u202e\u200b\u0085\u{e0041}end'
  write(audit, id)
  await audit.sync()
  audit.close()
  t.match(fs.readFileSync(path, 'utf8'), /"pay\\u2028\\u2029\\u202e\\u200b\\u0085\\udb40\\udc41end"/)
  t.same(idsIn(path), [id])
})

t.test('under load, rotation puts every entry in exactly one file, and every sync covers its own entry', async (t) => {
  const folder = t.testdir()
  const path = join(folder, 'audit.log')
  const audit = createFileAudit(path)
  const syncs: Promise<unknown>[] = []
  const rotated: string[] = []
  const strangers: number[] = []
  for (let id = 0; id < 2000; id++) {
    write(audit, id)
    syncs.push(audit.sync().catch((error: unknown) => error))
    if (id % 20 === 19) {
      rotated.push(`${path}.${id}`)
      fs.renameSync(path, rotated.at(-1)!)
      audit.reopen()
      // Whatever is opened next takes the lowest number that is free. To sync it is an error (EBADF), as it is for no pipe or device.
      strangers.push(fs.openSync('/', O_PATH))
    }
    if (id % 100 === 0) await tick()
  }
  const failures = (await Promise.all(syncs)).filter((error) => error !== undefined)
  t.same(failures, [])
  for (const fd of strangers) fs.closeSync(fd)
  const ids = [...rotated, path].flatMap(idsIn)
  t.same(
    ids,
    Array.from({ length: 2000 }, (_, id) => String(id)),
  )
  const open = fs.readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return fs.readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder)
    } catch {
      return false
    }
  })
  t.equal(open.length, 1, 'and nothing but the newest file stays open')
  audit.close()
})

/** The audit log over a file system that tells what is done with each descriptor, and holds its syncs until they are let go. */
function watched(t: Test) {
  const done: string[] = []
  const names = new Map<number, number>()
  const nameOf = (fd: number) => `file ${names.get(fd)}`
  const held: (() => void)[] = []
  let fault: NodeJS.ErrnoException | null = null
  const disk = {
    ...fs,
    openSync(...args: Parameters<typeof fs.openSync>) {
      const fd = fs.openSync(...args)
      if (args[1] !== 'r') names.set(fd, names.size + 1)
      return fd
    },
    closeSync(fd: number) {
      if (names.has(fd)) done.push(`close ${nameOf(fd)}`)
      fs.closeSync(fd)
    },
    fdatasync(fd: number, callback: (error: Error | null) => void) {
      const failed = fault
      held.push(() => {
        done.push(`sync ${nameOf(fd)}`)
        if (failed !== null) callback(failed)
        else fs.fdatasync(fd, callback)
      })
    },
    fdatasyncSync(fd: number) {
      if (fault !== null) throw fault
      done.push(`sync ${nameOf(fd)} now`)
      fs.fdatasyncSync(fd)
    },
  }
  const path = join(t.testdir(), 'audit.log')
  const release = () => {
    for (const one of held.splice(0)) one()
  }
  return {
    path,
    audit: createFileAudit(path, disk),
    done,
    release,
    /** Lets go of the syncs it has begun, and waits for it. */
    settled: async (begun: void | Promise<void>) => {
      release()
      await begun
    },
    /** From now on every sync fails with this code, until it is null. */
    fail: (code: string | null) => (fault = code === null ? null : Object.assign(new Error(code), { code })),
  }
}

t.test('closes a rotated file once it is synced and no call waits for it', async (t) => {
  const { audit, path, done, release } = watched(t)
  write(audit, 'before')
  const waiting = audit.sync()
  fs.renameSync(path, `${path}.1`)
  audit.reopen()
  t.same(done, ['sync file 1 now'], 'on the disk: a later sync has only the new file to ask')
  write(audit, 'after')
  release()
  await waiting
  t.same(done, ['sync file 1 now', 'sync file 1', 'close file 1'])

  audit.close()
})

t.test('a file that can no longer be synced is replaced by the new one, which notes the gap', async (t) => {
  const { audit, path, done, release, settled, fail } = watched(t)
  write(audit, 'on its way')
  const waiting = audit.sync()
  fs.renameSync(path, `${path}.1`)
  fail('EIO')
  t.throws(() => audit.reopen(), { message: /new file is in use/, cause: { code: 'EIO' } })
  fail(null)
  t.rejects(waiting, /another sync/, 'who waited for the old file hears of it, even where their own sync did not fail')
  release()
  await waiting.catch(() => undefined)
  t.same(done, ['sync file 1', 'close file 1'])

  await settled(audit.check())
  write(audit, 'goes on')
  await settled(audit.sync())
  partial(t, linesIn(path), [{ phase: 'gap', since: String }, { call_id: 'goes on' }])
  t.same(idsIn(`${path}.1`), ['on its way'])
  fs.renameSync(path, `${path}.2`)
  audit.reopen()
  write(audit, 'again')
  t.same(idsIn(path), ['again'], 'and it is as if nothing had been')
  audit.close()
})

t.test('a disk that accepts entries but fails to sync them', async (t) => {
  const { audit, path, settled, fail } = watched(t)
  fail('EIO')
  write(audit, 'allowed')
  await t.rejects(settled(audit.sync()), { code: 'EIO' })
  write(audit, 'outcome')
  await t.rejects(
    settled(audit.check()),
    { code: 'EIO' },
    'an entry that could be written does not make the log a good one',
  )
  write(audit, 'read')
  await t.rejects(settled(audit.check()), { code: 'EIO' })
  t.same(idsIn(path), ['allowed', 'outcome', 'read'])

  fail(null)
  write(audit, 'not yet synced')
  await settled(audit.check())
  await settled(audit.check())
  write(audit, 'kept')
  const lines = linesIn(path)
  partial(t, lines.slice(3), [
    { call_id: 'not yet synced' },
    { phase: 'gap', since: /^\d{4}-.*Z$/ },
    { call_id: 'kept' },
  ])
  t.equal(lines.length, 6, 'the gap is noted once')
  audit.close()
})

t.test('appends on a new line after a file cut off in the middle of one', (t) => {
  const path = join(t.testdir({ 'audit.log': '{"call_id":"whole"}\n{"call_' }), 'audit.log')
  const audit = createFileAudit(path)
  write(audit, 'next')
  write(audit, 'and next')
  audit.close()
  const lines = ['{"call_id":"whole"}', '{"call_', '{"call_id":"next"}', '{"call_id":"and next"}', '']
  t.same(fs.readFileSync(path, 'utf8').split('\n'), lines)
  const again = createFileAudit(path)
  write(again, 'whole again')
  again.close()
  t.same(fs.readFileSync(path, 'utf8').split('\n'), [...lines.slice(0, -1), '{"call_id":"whole again"}', ''])
  t.end()
})

t.test('the entries of one turn of the event loop are one write at its end', async (t) => {
  const path = join(t.testdir(), 'audit.log')
  const writes: string[] = []
  const disk = { ...fs, isFull: false }
  const audit = createFileAudit(path, {
    ...disk,
    writeSync(fd: number, bytes: Buffer, offset: number) {
      if (disk.isFull) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' })
      writes.push(
        [...bytes.toString().matchAll(/"(?:call_id":"(\w+)|phase":"(gap))"/g)].map((m) => m[1] ?? m[2]).join(' '),
      )
      return fs.writeSync(fd, bytes, offset)
    },
  })
  const later = (id: string) => audit.writeInTurn({ call_id: id } as never)

  const written = [later('a'), later('b')]
  t.same(writes, [])
  await Promise.all(written)
  await later('c')
  t.same(writes, ['a b', 'c'])

  void later('d')
  write(audit, 'e')
  t.same(writes.splice(0), ['a b', 'c', 'd', 'e'], 'what is written at once does not overtake them')
  void later('f')
  await audit.sync()
  t.same(writes.splice(0), ['f'], 'a sync has them too')

  disk.isFull = true
  const both = [later('g'), later('h')]
  const came = Date.now()
  while (Date.now() < came + 2);
  partial(t, await Promise.allSettled(both), [{ reason: { code: 'ENOSPC' } }, { reason: { code: 'ENOSPC' } }])
  disk.isFull = false
  await later('i')
  t.same(writes.splice(0), ['gap', 'i'])
  t.ok(Date.parse(linesIn(path).at(-2)!.since!) <= came, 'since they came, and not since they could not be written')

  void later('j')
  fs.renameSync(path, `${path}.1`)
  audit.reopen()
  t.equal(idsIn(`${path}.1`).at(-1), 'j', 'before a rotation they are in the old file')
  void later('k')
  audit.close()
  t.same(idsIn(path), ['k'], 'and nothing is left behind at the end')
  await t.rejects(later('l'), /closed/, 'the number of the descriptor may be another file by now')
})

t.test('of the entries of a turn that are cut off, the next one starts on a line of its own', async (t) => {
  const path = join(t.testdir(), 'audit.log')
  let room = Infinity
  const audit = createFileAudit(path, {
    ...fs,
    writeSync(fd: number, bytes: Buffer, offset: number) {
      if (room === 0) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' })
      const length = Math.min(room, bytes.length - offset)
      room -= length
      return fs.writeSync(fd, bytes, offset, length)
    },
  })
  const line = '{"call_id":"1"}\n'
  const fill = async (characters: number, ...ids: number[]) => {
    room = characters
    const all = await Promise.allSettled(ids.map((id) => audit.writeInTurn({ call_id: String(id) } as never)))
    room = Infinity
    return all.map(({ status }) => status)
  }
  t.same(await fill(line.length, 1, 2), ['rejected', 'rejected'])
  await audit.writeInTurn({ call_id: '3' } as never)
  t.same(await fill(line.length + 5, 4, 5), ['rejected', 'rejected'])
  await audit.writeInTurn({ call_id: '6' } as never)
  audit.close()
  t.same(
    fs
      .readFileSync(path, 'utf8')
      .split('\n')
      .map((text) => text.replace(/^\{"ts.*$/, 'gap')),
    ['{"call_id":"1"}', 'gap', '{"call_id":"3"}', '{"call_id":"4"}', '{"cal', 'gap', '{"call_id":"6"}', ''],
  )
})

t.test('a process that is made to end within a turn has written its entries', (t) => {
  const path = join(t.testdir(), 'audit.log')
  const script = `
    import { createFileAudit } from ${JSON.stringify(compiled('plugins/dispatcher/audit-log.ts'))}
    import { flushOnExit } from ${JSON.stringify(compiled('programs/process/end-calls.ts'))}
    const audit = createFileAudit(process.argv[1])
    flushOnExit(audit)
    void audit.writeInTurn({ call_id: 'last' })
    process.exit()
  `
  execFileSync(process.execPath, ['--input-type=module', '--eval', script, path])
  t.same(idsIn(path), ['last'])
  t.end()
})

t.test('every line names the replica, that of a gap as well', async (t) => {
  const path = join(t.testdir(), 'audit.log')
  const audit = createFileAudit(path, fs, () => {}, 'mcp-"7')
  write(audit, 'first')
  fs.rmSync(path)
  await tick()
  audit.write({ call_id: 'second', client: '"}' } as never)
  audit.close()
  partial(t, linesIn(path), [
    { phase: 'gap', replica: 'mcp-"7' },
    { call_id: 'second', client: '"}', replica: 'mcp-"7' },
  ])
})

t.test('a file that was moved is followed by a new one at the next entry', async (t) => {
  const path = join(t.testdir(), 'audit.log')
  const noticed: string[] = []
  const audit = createFileAudit(path, fs, (what) => noticed.push(what))
  write(audit, 'here')
  fs.renameSync(path, `${path}.1`)
  await tick()
  write(audit, 'anew')
  await audit.sync()
  await audit.check()
  t.same(idsIn(`${path}.1`), ['here'])
  t.same(idsIn(path), ['anew'], 'nothing is lost, so there is no gap')
  t.equal(fs.statSync(path).mode & 0o777, 0o600)
  fs.renameSync(path, `${path}.2`)
  fs.writeFileSync(path, '{"call_id":"of a rotation"}\n')
  await audit.check()
  audit.reopen()
  write(audit, 'there')
  t.same(idsIn(path), ['of a rotation', 'there'], 'as by a rotation that makes the new file itself')
  t.same(noticed, ['moved', 'moved'], 'each is told once, and what SIGHUP says then is no news')
  audit.close()
})

t.test('a file that was deleted is replaced at the next entry or check, and the new one notes the gap', async (t) => {
  const path = join(t.testdir(), 'audit.log')
  const noticed: string[] = []
  const audit = createFileAudit(path, fs, (what) => noticed.push(what))
  const before = new Date().toISOString()
  write(audit, 'lost')
  fs.rmSync(path)
  await tick()
  write(audit, 'kept')
  const [gap, ...rest] = linesIn(path)
  partial(t, gap!, { phase: 'gap', since: /^\d{4}-.*Z$/ })
  t.ok(gap!.since! <= before, 'from the first entry that the deleted file can have had')
  t.same(
    rest.map(({ call_id }) => call_id),
    ['kept'],
  )
  fs.rmSync(path)
  await audit.check()
  t.same(
    linesIn(path).map(({ phase }) => phase),
    ['gap'],
    'with nothing to write as well',
  )
  await audit.check()
  t.equal(linesIn(path).length, 1, 'once')
  t.same(noticed, ['deleted', 'deleted'])

  write(audit, 'decision')
  fs.rmSync(path)
  await t.rejects(audit.sync(), /deleted/, 'an entry that went with the file is not safe')
  await audit.check()
  await audit.sync()
  t.same(
    linesIn(path).map(({ phase }) => phase),
    ['gap'],
  )
  audit.close()
})

t.test('asks for the file once in each turn of the event loop, and at every check', async (t) => {
  const path = join(t.testdir(), 'audit.log')
  let asked = 0
  const audit = createFileAudit(path, {
    ...fs,
    statSync: ((...args: Parameters<typeof fs.statSync>) => {
      asked++
      return fs.statSync(...args)
    }) as typeof fs.statSync,
  })
  asked = 0
  for (const id of [1, 2, 3]) write(audit, id)
  t.equal(asked, 1)
  await audit.check()
  t.equal(asked, 2)
  await tick()
  write(audit, 4)
  t.equal(asked, 3)
  audit.close()
})

t.test('without a place for a new file, a moved one goes on and a deleted one takes nothing', async (t) => {
  const folder = t.testdir({ logs: {} })
  const [path, place] = [join(folder, 'logs', 'audit.log'), join(folder, 'logs')]
  const audit = createFileAudit(path)
  fs.renameSync(place, `${place}.1`)
  write(audit, 'moved with its folder')
  await t.rejects(async () => audit.check(), { code: 'ENOENT' }, 'but it is not ready')
  t.same(idsIn(join(`${place}.1`, 'audit.log')), ['moved with its folder'])
  fs.rmSync(`${place}.1`, { recursive: true })
  t.throws(() => write(audit, 'nowhere'), { code: 'ENOENT' })
  await t.rejects(async () => audit.check(), { code: 'ENOENT' })
  fs.mkdirSync(path, { recursive: true })
  t.throws(() => write(audit, 'into a folder'), { code: 'EISDIR' })
  fs.rmdirSync(path)
  write(audit, 'again')
  partial(t, linesIn(path), [{ phase: 'gap', since: String }, { call_id: 'again' }])
  await audit.check()
  audit.close()
})

t.test('a file that cannot be written any more fails the check', async (t) => {
  const path = join(t.testdir(), 'audit.log')
  const readOnly = { on: false }
  const audit = createFileAudit(path, {
    ...fs,
    accessSync() {
      if (readOnly.on) throw Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' })
    },
  })
  await audit.check()
  readOnly.on = true
  await t.rejects(async () => audit.check(), { code: 'EROFS' }, 'before an entry had to find out')
  audit.close()
})

t.test('paths that are not files', async (t) => {
  await t.test('writes to a pipe while it has a reader', async (t) => {
    const path = join(t.testdir(), 'pipe')
    execFileSync('mkfifo', [path])
    t.throws(() => createFileAudit(path), { code: 'ENXIO' }, 'a start does not wait for a reader that may never come')
    const reader = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
    const audit = createFileAudit(path)
    write(audit, 'one')
    await audit.sync()
    await audit.check()
    audit.reopen()
    write(audit, 'two')
    await audit.sync()
    const read = Buffer.alloc(1000)
    const length = fs.readSync(reader, read)
    t.equal(read.toString('utf8', 0, length), '{"call_id":"one"}\n{"call_id":"two"}\n')
    fs.closeSync(reader)
    t.throws(() => write(audit, 'three'), { code: 'EPIPE' })
    await t.rejects(async () => audit.check(), { code: 'EPIPE' })
    audit.close()
  })

  await t.test('what is longer than a pipe takes at once would be cut, so each entry is a write', async (t) => {
    const path = join(t.testdir(), 'pipe')
    execFileSync('mkfifo', [path])
    const reader = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
    const lengths: number[] = []
    const audit = createFileAudit(path, {
      ...fs,
      writeSync(fd: number, bytes: Buffer, offset: number) {
        lengths.push(bytes.length)
        return fs.writeSync(fd, bytes, offset)
      },
    })
    const entry = { call_id: 'x'.repeat(500) } as never
    await Promise.all(Array.from({ length: 12 }, () => audit.writeInTurn(entry)))
    t.same(lengths, Array(12).fill(JSON.stringify(entry).length + 1))
    audit.close()
    fs.closeSync(reader)
  })

  await t.test('a pipe whose reader stalls counts as full and blocks nothing', (t) => {
    const path = join(t.testdir(), 'pipe')
    execFileSync('mkfifo', [path])
    const script = `
      import { constants, openSync, readSync } from 'node:fs'
      import { createFileAudit } from ${JSON.stringify(compiled('plugins/dispatcher/audit-log.ts'))}
      const [path] = process.argv.slice(1)
      const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
      const audit = createFileAudit(path)
      const codes = []
      let taken = 0
      try {
        for (;; taken++) audit.write({ call_id: String(taken), padding: 'x'.repeat(5000) })
      } catch ({ code }) {
        codes.push(code)
      }
      await Promise.resolve(audit.check()).catch(({ code }) => codes.push(code))
      const drain = () => {
        const bytes = Buffer.alloc(1 << 20)
        return bytes.toString('utf8', 0, readSync(reader, bytes))
      }
      const before = drain()
      audit.write({ call_id: 'after' })
      await audit.check()
      console.log(JSON.stringify({ taken, codes, lines: (before + drain()).trimEnd().split('\\n') }))
    `
    const child = spawnSync(process.execPath, ['--input-type=module', '--eval', script, path], {
      encoding: 'utf8',
      timeout: 15_000,
      // One that waits inside a system call hears of no other.
      killSignal: 'SIGKILL',
    })
    t.equal(child.status, 0, `it ends: ${child.signal} ${child.stderr}`)
    const { taken, codes, lines } = JSON.parse(child.stdout) as { taken: number; codes: string[]; lines: string[] }
    t.same(codes, ['EAGAIN', 'EAGAIN'])
    t.ok(taken > 0)
    const ids = lines.slice(0, taken).map((line) => (JSON.parse(line) as { call_id: string }).call_id)
    t.same(
      ids,
      Array.from({ length: taken }, (_, id) => String(id)),
      'what was taken is whole',
    )
    partial(t, JSON.parse(lines.at(-2)!), { phase: 'gap', since: String })
    t.same(JSON.parse(lines.at(-1)!), { call_id: 'after' }, 'and after what was cut off it goes on')
    t.end()
  })

  await t.test('a device, and standard output by its name', async (t) => {
    const audit = createFileAudit('/dev/null')
    write(audit, 'gone')
    await audit.sync()
    await audit.check()
    audit.reopen()
    audit.close()
    const script = `
      import { createFileAudit } from ${JSON.stringify(compiled('plugins/dispatcher/audit-log.ts'))}
      const audit = createFileAudit('/dev/stdout')
      audit.write({ call_id: 'out' })
      await audit.sync()
      await audit.check()
    `
    const node = ['--input-type=module', '--eval', script]
    // Of its own, Node gives a child no pipe but a socket, which nobody can open by name.
    const piped = ['-c', '"$0" "$@" | cat', process.execPath, ...node]
    t.equal(execFileSync('sh', piped, { encoding: 'utf8' }), '{"call_id":"out"}\n')
    partial(t, spawnSync(process.execPath, node, { encoding: 'utf8' }), { status: 1, stderr: /ENXIO/ })
  })
})
