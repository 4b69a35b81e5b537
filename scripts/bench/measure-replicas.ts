import { join } from 'node:path'
import { makeCertificate, type Certificate } from '../../test/edge/support/make-certificate.js'
import { startNginx } from '../../test/edge/support/start-nginx.js'
import { startPostgres, type Postgres } from '../../test/postgres/start-postgres.js'
import { choosePort } from '../../programs/process/choose-port.js'
import { SUITE_FOLDER } from '../../test/suite-folder.js'
import { callTool, createPoster, load, type LoadRun, type Poster } from './callers.js'
import { inScratch, type Scratch } from './in-scratch.js'
import { familySeconds, peakMemory, processorSeconds } from './processor-time.js'
import { startPce } from './start-pce.js'
import { startProvider } from './start-provider.js'
import { startServer, type StartedServer } from './start-server.js'
import { judge } from './judge.js'
import { median, percentile } from './statistics.js'

const CALLERS = 20
const ROUNDS = 3
const CROWD_MS = 800
const ALONE_MS = 400
/**
 * The maximum number of calls, and the maximum time, for which each process is warmed up. This is needed because code
 * that V8 has compiled is several times faster than code in a new process.
 */
const WARM_CALLS = 1500
const LONGEST_WARM_MS = 2000
const REGISTRATIONS = 60
const GROUP = 'bench'
/** A limit that is far above any rate measured here. Calls are counted as on a real server, but never refused. */
const NEVER_REACHED = '1000000'

/**
 * Two calls: one that the server answers by itself, and one that queries the caller's PCE with the key from the
 * keystore.
 */
const CALLS = {
  'get-server-changelog': { unlearn_only: true },
  'get-labels': { key: 'env' },
} as const
type Call = keyof typeof CALLS
const CALL_NAMES = Object.keys(CALLS) as Call[]

/** The cheapest call that needs a confirmation: a single request to a PCE without pending changes. */
const CONFIRMED = { tool: 'provision-policy', args: {} }

/** Where the state is stored, and where the limits are counted. */
const ENGINES = ['file', 'shared', 'replica'] as const
type Engine = (typeof ENGINES)[number]
const ENGINE_NAMES: Record<Engine, string> = {
  file: 'file',
  shared: 'PostgreSQL',
  replica: 'PostgreSQL, MCP_LIMITS=replica',
}

/** The cost of one type of work over all rounds. */
export interface Cost {
  /** The number of pieces of work per second, as the median of the rounds. */
  perSecond: number
  /** The mean and the 99th percentile in milliseconds. */
  mean: number
  p99: number
  /** The processor time of the servers and of the database, in seconds per 1,000 pieces of work. */
  serverCpu: number
  databaseCpu: number
  /** The number of write transactions, and the number of bytes of the write-ahead log, per piece of work. */
  writes: number
  logBytes: number
  failures: number
  reason?: string
}

export interface ReplicaFigures {
  /** The costs with one and three replicas behind nginx. */
  replicas: Record<Call, { one: Cost; three: Cost }>
  /** The costs on one server without nginx, for a single caller and for all callers together. */
  price: Record<Call, Record<Engine, { alone: Cost; crowd: Cost }>>
  /** The costs of complete confirmed calls: the question, POST /confirm, and the call. */
  confirmed: Record<'file' | 'shared', Cost>
  registered: Record<'file' | 'shared', Cost>
  /** The peak memory of a replica in MiB. */
  memory: number
}

interface Run extends LoadRun {
  serverCpu: number
  databaseCpu: number
  writes: number
  logBytes: number
}

/**
 * Measures authenticated calls of twenty callers, each with a PCE key in the keystore. It compares 1 and 3 replicas
 * behind nginx, on one PostgreSQL with synchronous writes, with a server whose state is in a file. All of them run at
 * the same time on this machine and are measured one after the other. This needs a build, nginx and Linux, and takes a
 * minute, or longer on a busy machine.
 */
export async function measureReplicas(): Promise<ReplicaFigures> {
  const ends: (() => unknown)[] = []
  const test = { teardown: (fn: () => unknown) => void ends.unshift(fn) }
  const suiteFolder = process.env[SUITE_FOLDER]
  try {
    return await inScratch(async (scratch) => {
      // The test rig keeps a database cluster in this folder, which it copies.
      process.env[SUITE_FOLDER] = scratch.directory
      const certificate = makeCertificate(test)
      const postgres = await startPostgres(test, { isDurable: true })
      const pce = await startPce('serve-secure-pce.mjs', [certificate.certPath, certificate.keyPath])
      test.teardown(() => pce.stop())
      const provider = await startProvider(GROUP)
      test.teardown(() => provider.close())
      return measureAll(await startRig(test, scratch, certificate, postgres, pce.port, provider))
    })
  } finally {
    if (suiteFolder === undefined) delete process.env[SUITE_FOLDER]
    else process.env[SUITE_FOLDER] = suiteFolder
    for (const end of ends) await end()
  }
}

type Rig = Awaited<ReturnType<typeof startRig>>

async function startRig(
  test: { teardown(fn: () => unknown): void },
  scratch: Scratch,
  certificate: Certificate,
  postgres: Postgres,
  pcePort: string,
  provider: Awaited<ReturnType<typeof startProvider>>,
) {
  const fronts = { one: await choosePort(0), three: await choosePort(0) }
  const common = {
    ...provider.environment,
    MCP_PUBLIC_URL: `https://localhost:${fronts.three}`,
    MCP_TRUSTED_PROXIES: '127.0.0.1',
    MCP_ROLE_GROUPS_ADMIN: GROUP,
    MCP_KEK: Buffer.alloc(32, 2).toString('base64'),
    MCP_CONFIRM_HMAC_KEY: Buffer.alloc(32, 1).toString('base64'),
    MCP_ALLOWED_PCE_HOSTS: '127.0.0.1',
    MCP_RATE_LIMIT_PER_MINUTE: NEVER_REACHED,
    MCP_CONFIRM_RATE_PER_MINUTE: NEVER_REACHED,
    PCE_CA_FILE: certificate.certPath,
  }
  const { url: MCP_STATE_URL } = await postgres.makeDatabase()
  const start = (name: string, more: Record<string, string>) =>
    startServer(scratch, name, () => ({ ...common, ...more }))
  // The first server migrates the database.
  const first = await start('replica-0', { MCP_STATE_URL })
  const [second, third, counting, file] = await Promise.all([
    start('replica-1', { MCP_STATE_URL }),
    start('replica-2', { MCP_STATE_URL }),
    start('counting', { MCP_STATE_URL, MCP_LIMITS: 'replica' }),
    start('file', { MCP_KEYSTORE_PATH: join(scratch.directory, 'keystore.db') }),
  ])
  const groups: Record<keyof typeof fronts, StartedServer[]> = { one: [first], three: [first, second, third] }
  for (const name of ['one', 'three'] as const) {
    const servers = groups[name].map(({ url }) => `server ${new URL(url).host} max_fails=0;`)
    await startNginx(test, { port: fronts[name], certificate, servers })
  }
  const tokens = await Promise.all(Array.from({ length: CALLERS }, (_, at) => provider.tokenFor(`caller-${at}`)))
  const postersAt = (origin: string) => {
    const made = tokens.map((token) => createPoster(origin, token, { ca: certificate.cert }))
    for (const poster of made) test.teardown(() => poster.close())
    return made
  }
  return {
    postgres,
    groups,
    engines: { file, shared: first, replica: counting } satisfies Record<Engine, StartedServer>,
    callersAt: {
      file: postersAt(file.url),
      shared: postersAt(first.url),
      replica: postersAt(counting.url),
      one: postersAt(`https://localhost:${fronts.one}`),
      three: postersAt(`https://localhost:${fronts.three}`),
    },
    postersAt,
    tokenFor: provider.tokenFor,
    registration: {
      pce_host: '127.0.0.1',
      pce_port: Number(pcePort),
      pce_org_id: 1,
      api_key: 'api_0123456789abcdef',
      api_secret: 'f'.repeat(64),
    },
  }
}

async function measureAll(rig: Rig): Promise<ReplicaFigures> {
  const { groups, engines, callersAt, postersAt, registration } = rig
  const call = (name: Call) => (caller: Poster) => succeed(callTool(caller, name, CALLS[name]))
  const register = (caller: Poster) => succeed(callTool(caller, 'register-pce-credentials', registration))
  for (const engine of ['file', 'shared'] as const) await Promise.all(callersAt[engine].map(register))

  const runs = new Map<string, Run[]>()
  /**
   * Measures one round of one type of work and stores the result under its name. If `isAlone` is true, there is one
   * caller.
   */
  async function measure<T>(
    name: string,
    servers: readonly StartedServer[],
    callers: readonly T[],
    work: (caller: T) => Promise<unknown>,
    isOver: (elapsed: number) => boolean,
  ): Promise<void> {
    const before = await readMeters(rig, servers)
    const run = await load(callers, work, isOver)
    const after = await readMeters(rig, servers)
    const difference = (meter: keyof typeof after) => after[meter] - before[meter]
    const kept = runs.get(name) ?? []
    runs.set(name, kept)
    kept.push({
      ...run,
      serverCpu: difference('serverCpu'),
      databaseCpu: difference('databaseCpu'),
      writes: difference('writes'),
      logBytes: difference('logBytes'),
    })
  }
  const lasting = (ms: number) => (elapsed: number) => elapsed >= ms

  // Each process is warmed up separately, so that all of them are equally fast.
  for (const callers of [...groups.three.map(({ url }) => postersAt(url)), callersAt.file, callersAt.replica])
    for (const name of CALL_NAMES) {
      let left = WARM_CALLS
      const isWarm = (elapsed: number) => left-- <= 0 || elapsed >= LONGEST_WARM_MS
      await load(callers, call(name), isWarm)
    }

  for (let round = 0; round < ROUNDS; round++) {
    for (const name of CALL_NAMES) {
      for (const group of ['one', 'three'] as const)
        await measure(`${group} ${name}`, groups[group], callersAt[group], call(name), lasting(CROWD_MS))
      for (const engine of ENGINES) {
        const [servers, callers] = [[engines[engine]], callersAt[engine]]
        await measure(`alone ${engine} ${name}`, servers, callers.slice(0, 1), call(name), lasting(ALONE_MS))
        await measure(`crowd ${engine} ${name}`, servers, callers, call(name), lasting(CROWD_MS))
      }
    }
    for (const engine of ['file', 'shared'] as const) {
      const servers = [engines[engine]]
      await measure(`confirmed ${engine}`, servers, callersAt[engine], confirmOne, lasting(CROWD_MS))
      const newcomers = await makeNewcomers(rig, engine, `round ${round}`)
      const waiting = [...newcomers]
      await measure(
        `registered ${engine}`,
        servers,
        Array.from({ length: CALLERS }, () => null),
        () => register(waiting.shift()!),
        () => waiting.length === 0,
      )
      for (const newcomer of newcomers) newcomer.close()
    }
  }

  const cost = (name: string) => summarise(runs.get(name)!)
  return {
    replicas: byName(CALL_NAMES, (name) => ({ one: cost(`one ${name}`), three: cost(`three ${name}`) })),
    price: byName(CALL_NAMES, (name) =>
      byName(ENGINES, (engine) => ({
        alone: cost(`alone ${engine} ${name}`),
        crowd: cost(`crowd ${engine} ${name}`),
      })),
    ),
    confirmed: byName(['file', 'shared'] as const, (engine) => cost(`confirmed ${engine}`)),
    registered: byName(['file', 'shared'] as const, (engine) => cost(`registered ${engine}`)),
    memory: Math.max(...groups.three.map(({ pid }) => peakMemory(pid))),
  }
}

/**
 * Creates people who have not registered yet. New people are needed, because each person can register only a few times.
 */
const makeNewcomers = ({ engines, tokenFor }: Rig, engine: Engine, label: string): Promise<Poster[]> =>
  Promise.all(
    Array.from({ length: REGISTRATIONS }, async (_, at) =>
      createPoster(engines[engine].url, await tokenFor(`${label}, person ${at}`)),
    ),
  )

async function confirmOne(caller: Poster): Promise<void> {
  const { tool, args } = CONFIRMED
  const asked = await callTool(caller, tool, args)
  const confirm = asked.answer.confirm as { body: object } | undefined
  if (confirm === undefined) throw new Error(`not asked: ${JSON.stringify(asked.answer)}`)
  const { confirm_token: token } = await caller.post('/confirm', confirm.body)
  await succeed(callTool(caller, tool, args, token as string))
}

async function succeed(call: ReturnType<typeof callTool>): Promise<void> {
  const { isError, answer } = await call
  if (isError) throw new Error(JSON.stringify(answer))
}

async function readMeters({ postgres }: Rig, servers: readonly StartedServer[]) {
  const [row] = await postgres.query(
    `SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS writes,
      pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::text AS log_bytes`,
  )
  const [postmaster, ...backends] = postgres.processes()
  return {
    serverCpu: servers.reduce((sum, { pid }) => sum + processorSeconds(pid), 0),
    databaseCpu: familySeconds(postmaster!, backends),
    writes: Number(row!.writes),
    logBytes: Number(row!.log_bytes),
  }
}

function summarise(runs: readonly Run[]): Cost {
  const times = runs.flatMap((run) => run.times)
  const sum = (read: (run: Run) => number) => runs.reduce((total, run) => total + read(run), 0)
  const per = (read: (run: Run) => number) => sum(read) / times.length
  const reason = runs.find((run) => run.reason !== undefined)?.reason
  return {
    perSecond: median(runs.map((run) => run.times.length / run.seconds)),
    mean: times.reduce((total, ms) => total + ms, 0) / times.length,
    p99: percentile(times, 99),
    serverCpu: 1000 * per((run) => run.serverCpu),
    databaseCpu: 1000 * per((run) => run.databaseCpu),
    writes: per((run) => run.writes),
    logBytes: per((run) => run.logBytes),
    failures: sum((run) => run.failures),
    ...(reason !== undefined && { reason }),
  }
}

const byName = <K extends string, V>(names: readonly K[], make: (name: K) => V): Record<K, V> =>
  Object.fromEntries(names.map((name) => [name, make(name)])) as Record<K, V>

/** Formats the lines of the report. */
export function describeReplicas({ replicas, price, confirmed, registered, memory }: ReplicaFigures): string[] {
  const ratio = (a: number, b: number) => (a / b).toFixed(2)
  const line = (what: string, { perSecond, mean, p99, serverCpu, databaseCpu, failures, reason }: Cost) =>
    `    ${what.padEnd(32)}${perSecond.toFixed(0).padStart(6)} /s   mean ${mean.toFixed(1).padStart(5)} ms, p99 ${p99.toFixed(1).padStart(5)} ms` +
    `   processor for 1,000: servers ${serverCpu.toFixed(2)} s, PostgreSQL ${databaseCpu.toFixed(2)} s` +
    (failures === 0 ? '' : `   failures: ${failures} (${reason})`)
  const writes = ({ writes: count, logBytes }: Cost) =>
    `${count.toFixed(2)} writing transactions, ${logBytes.toFixed(0)} bytes of its log`
  const lines = [
    `Replicas on PostgreSQL: ${CALLERS} callers with their own PCE keys; everything on this machine`,
    '  1 and 3 replicas behind nginx, round robin',
  ]
  for (const name of CALL_NAMES) {
    const { one, three } = replicas[name]
    lines.push(
      line(`${name}, 1`, one),
      line(`${name}, 3`, three),
      `    ${'ratio 3 to 1'.padEnd(32)}${ratio(three.perSecond, one.perSecond).padStart(6)}      processor ${ratio(three.serverCpu, one.serverCpu)}`,
    )
  }
  lines.push(`    memory of a replica at its highest ${memory.toFixed(0)} MiB`)
  for (const [situation, what] of [
    ['alone', 'one caller at a time'],
    ['crowd', `${CALLERS} callers at once`],
  ] as const) {
    lines.push(`  one server without nginx, ${what}`)
    for (const name of CALL_NAMES) {
      const at = (engine: Engine) => price[name][engine][situation]
      const against = (engine: Engine) =>
        `mean ${ratio(at(engine).mean, at('file').mean)}, processor ${ratio(at(engine).serverCpu, at('file').serverCpu)}`
      lines.push(
        `   ${name}`,
        ...ENGINES.map((engine) => line(ENGINE_NAMES[engine], at(engine))),
        `    ratio to the file: ${against('shared')}; MCP_LIMITS=replica: ${against('replica')}; of one call: ${writes(at('shared'))}`,
      )
    }
  }
  for (const [what, { file, shared }] of [
    ['confirmed calls: question, POST /confirm, call', confirmed],
    ['registrations', registered],
  ] as const)
    lines.push(
      `  ${what}`,
      line(ENGINE_NAMES.file, file),
      line(ENGINE_NAMES.shared, shared),
      `    ratio to the file: rate ${ratio(shared.perSecond, file.perSecond)}, processor ${ratio(shared.serverCpu, file.serverCpu)}; of one: ${writes(shared)}`,
    )
  const costs = [
    ...CALL_NAMES.flatMap((name) => [
      replicas[name].one,
      replicas[name].three,
      ...ENGINES.flatMap((engine) => Object.values(price[name][engine])),
    ]),
    ...[confirmed, registered].flatMap(({ file, shared }) => [file, shared]),
  ]
  const failed = costs.reduce((sum, { failures }) => sum + failures, 0)
  lines.push(`  failures${' '.repeat(24)}${String(failed).padStart(8)}   ${judge(failed, { atMost: 0 })}`)
  return lines
}
