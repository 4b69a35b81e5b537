/** The file of the audit log: nothing is lost when it is moved, cut off, or no file at all (design decision 25). */
import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createFileAudit, type AuditLog } from '../../plugins/dispatcher/audit.js'
import type * as auditRoom from '../../plugins/dispatcher/audit.js'
import type * as logFile from '../../plugins/dispatcher/log-file.js'

const write = (audit: AuditLog, id: string | number) => audit.write({ call_id: String(id) } as never)
const tick = () => new Promise((resolve) => setImmediate(resolve))
const idsIn = (path: string) =>
  fs
    .readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { call_id: string }).call_id)

t.test('rotated under load: every entry is in one file, and every sync finds its own', async (t) => {
  const folder = t.testdir()
  const path = join(folder, 'audit.log')
  const audit = createFileAudit(path)
  const syncs: Promise<void>[] = []
  const rotated: string[] = []
  const strangers: number[] = []
  for (let id = 0; id < 2000; id++) {
    write(audit, id)
    syncs.push(audit.sync())
    if (id % 20 === 19) {
      rotated.push(`${path}.${id}`)
      fs.renameSync(path, rotated.at(-1)!)
      audit.reopen()
      // Whatever is opened next takes the lowest number that is free.
      strangers.push(fs.openSync('/dev/null', 'r'))
    }
    if (id % 100 === 0) await tick()
  }
  t.same(
    (await Promise.allSettled(syncs)).filter(({ status }) => status === 'rejected'),
    [],
  )
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
async function watched(t: Test) {
  const done: string[] = []
  const names = new Map<number, number>()
  const nameOf = (fd: number) => `file ${names.get(fd)}`
  const held: (() => void)[] = []
  let fault: Error | null = null
  const node = {
    ...fs,
    openSync(...args: Parameters<typeof fs.openSync>) {
      const fd = fs.openSync(...args)
      if (args[1] === 'a') names.set(fd, names.size + 1)
      return fd
    },
    closeSync(fd: number) {
      if (names.has(fd)) done.push(`close ${nameOf(fd)}`)
      fs.closeSync(fd)
    },
    fdatasync(fd: number, callback: (error: Error | null) => void) {
      held.push(() => {
        done.push(`sync ${nameOf(fd)}`)
        fs.fdatasync(fd, callback)
      })
    },
    fdatasyncSync(fd: number) {
      if (fault !== null) throw fault
      done.push(`sync ${nameOf(fd)} now`)
      fs.fdatasyncSync(fd)
    },
  }
  const logFileRoom = await t.mockImport<typeof logFile>('../../plugins/dispatcher/log-file.js', { 'node:fs': node })
  const { createFileAudit: create } = await t.mockImport<typeof auditRoom>('../../plugins/dispatcher/audit.js', {
    'node:fs': node,
    '../../plugins/dispatcher/log-file.js': logFileRoom,
  })
  const path = join(t.testdir(), 'audit.log')
  return {
    path,
    audit: create(path),
    done,
    release: () => {
      for (const one of held.splice(0)) one()
    },
    fail: (error: Error | null) => (fault = error),
  }
}

t.test('a file is closed when it is on the disk and nobody waits for it any more', async (t) => {
  const { audit, path, done, release, fail } = await watched(t)
  write(audit, 'before')
  const waiting = audit.sync()
  fs.renameSync(path, `${path}.1`)
  audit.reopen()
  t.same(done, ['sync file 1 now'], 'on the disk: a later sync has only the new file to ask')
  write(audit, 'after')
  release()
  await waiting
  t.same(done, ['sync file 1 now', 'sync file 1', 'close file 1'])

  done.length = 0
  fail(Object.assign(new Error('EIO'), { code: 'EIO' }))
  t.throws(() => audit.reopen(), { code: 'EIO' }, 'what may not be on the disk is not let go of')
  fail(null)
  audit.check()
  write(audit, 'still')
  t.match(fs.readFileSync(path, 'utf8'), /^.*"after".*\n.*"phase":"gap".*\n.*"still".*\n$/, 'and the log says so')
  audit.close()
})

t.test('a file that ends inside a line, because whoever wrote it died, is gone on with on a new one', (t) => {
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

t.test('a file that is moved goes on where it is until it is told', async (t) => {
  const path = join(t.testdir(), 'audit.log')
  const audit = createFileAudit(path)
  write(audit, 'here')
  fs.renameSync(path, `${path}.1`)
  write(audit, 'there')
  await audit.sync()
  audit.check()
  t.same(idsIn(`${path}.1`), ['here', 'there'])
  t.notOk(fs.existsSync(path))
  audit.reopen()
  write(audit, 'anew')
  t.same(idsIn(path), ['anew'])
  t.same(idsIn(`${path}.1`), ['here', 'there'])
  audit.close()
})

t.test('what is no file', async (t) => {
  await t.test('a pipe is written to while somebody reads it', async (t) => {
    const path = join(t.testdir(), 'pipe')
    execFileSync('mkfifo', [path])
    t.throws(() => createFileAudit(path), { code: 'ENXIO' }, 'a start does not wait for a reader that may never come')
    const reader = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
    const audit = createFileAudit(path)
    write(audit, 'one')
    await audit.sync()
    audit.check()
    audit.reopen()
    write(audit, 'two')
    await audit.sync()
    const read = Buffer.alloc(1000)
    const length = fs.readSync(reader, read)
    t.equal(read.toString('utf8', 0, length), '{"call_id":"one"}\n{"call_id":"two"}\n')
    fs.closeSync(reader)
    t.throws(() => write(audit, 'three'), { code: 'EPIPE' })
    t.throws(() => audit.check(), { code: 'EPIPE' })
    audit.close()
  })

  await t.test('a device, and standard output by its name', async (t) => {
    const audit = createFileAudit('/dev/null')
    write(audit, 'gone')
    await audit.sync()
    audit.check()
    audit.reopen()
    audit.close()
    const script = `
      import { createFileAudit } from './plugins/dispatcher/audit.ts'
      const audit = createFileAudit('/dev/stdout')
      audit.write({ call_id: 'out' })
      await audit.sync()
      audit.check()
    `
    const node = ['--import', 'tsx', '--input-type=module', '--eval', script]
    // Of its own, Node gives a child no pipe but a socket, which nobody can open by name.
    const piped = ['-c', '"$0" "$@" | cat', process.execPath, ...node]
    t.equal(execFileSync('sh', piped, { encoding: 'utf8' }), '{"call_id":"out"}\n')
    t.match(spawnSync(process.execPath, node, { encoding: 'utf8' }), { status: 1, stderr: /ENXIO/ })
  })
})
