/** Several server processes that share one state, behind nginx with round robin, each at PostgreSQL by way of a proxy of its own. */
import { join } from 'node:path'
import type { Test as TapTest } from 'tap'
import { createWorld, sharedEnv, untilReady, type WorldOptions } from '../edge/support/authenticated-world.js'
import { callTool, confirm, type CallOptions, type Json } from '../edge/support/call-tool.js'
import { sendRequest, type Answer, type Target } from '../edge/support/send-request.js'
import { startNginx } from '../edge/support/start-nginx.js'
import { found } from '../edge/support/within.js'
import { freePort } from '../free-port.js'
import { partial } from '../partial.js'
import { startFaultProxy, type FaultProxy } from './fault-proxy.js'
import type { Postgres } from './start-postgres.js'

interface Test {
  teardown(fn: () => unknown): void
}

export interface ReplicaOptions {
  /** Where the state is; without it in one SQLite file that all replicas open. */
  postgres?: Pick<Postgres, 'port' | 'makeDatabase'>
  /** No proxy stands between a replica and PostgreSQL, which so may ask for TLS. */
  isDirect?: boolean
  /** 3 unless told. */
  count?: number
  mode?: 'per_user' | 'shared'
  /** Laid over what all replicas get; the world's has no limits of rate. */
  env?: Record<string, string | undefined>
  world?: Omit<WorldOptions, 'publicUrl'>
}

type Program = Awaited<ReturnType<Awaited<ReturnType<typeof createWorld>>['serve']>>

export interface Replica {
  /** Of this one alone. */
  target: Target
  /** Between it and PostgreSQL; throws where there is none. */
  proxy: FaultProxy
  auditPath: string
  /** Of the process that runs now. Throws while there is none. */
  program: () => Program
  /** Starts it, with other variables or as another release if it is told, and waits until it is ready. Rejects with what it said where it ends. */
  start: (env?: Record<string, string | undefined>, release?: string) => Promise<void>
  /** Ends it as an operator does, and waits; its exit code. */
  stop: () => Promise<number | null>
  kill9: () => Promise<void>
  /** What /readyz says. Rejects with what the process said where it has ended by itself. */
  readiness: () => Promise<{ status: number; body: Json }>
}

export type Replicas = Awaited<ReturnType<typeof startReplicas>>

/** Starts them all, and waits until nginx reaches them. They end with the test. */
export async function startReplicas(t: Test, options: ReplicaOptions = {}) {
  const { postgres, isDirect = false, count = 3, mode = 'per_user', env = {}, world: worldOptions = {} } = options
  const port = await freePort()
  const world = await createWorld(t, { ...worldOptions, publicUrl: `https://localhost:${port}` })
  const database = await postgres?.makeDatabase()
  const common = {
    ...(mode === 'shared' ? { ...sharedEnv(world), MCP_STATE_PATH: join(world.folder, 'state.db') } : world.env),
    ...(mode === 'shared' && { MCP_KEYSTORE_PATH: undefined }),
    ...(database !== undefined && { MCP_KEYSTORE_PATH: undefined, MCP_STATE_PATH: undefined }),
    MCP_TRUSTED_PROXIES: 'unix',
    ...env,
  }

  const replicas = await Promise.all(Array.from({ length: count }, (_, n) => makeReplica(n)))
  async function makeReplica(n: number): Promise<Replica> {
    const socketPath = join(world.folder, `${n}.sock`)
    const auditPath = join(world.folder, `${n}.audit`)
    const proxy = postgres === undefined || isDirect ? undefined : await startFaultProxy(t, postgres)
    const target: Target = { origin: 'http://localhost', socketPath }
    let running: Program | undefined
    const program = () => {
      if (running === undefined) throw new Error(`replica ${n} does not run`)
      return running
    }
    return {
      target,
      auditPath,
      program,
      get proxy() {
        if (proxy === undefined) throw new Error('there is no proxy')
        return proxy
      },
      async start(more = {}, release) {
        if (running !== undefined) throw new Error(`replica ${n} runs`)
        running = await world.serve({
          args: ['--socket', socketPath],
          ...(release !== undefined && { program: release }),
          env: {
            ...common,
            MCP_AUDIT_LOG_PATH: auditPath,
            ...(database !== undefined && { MCP_STATE_URL: proxy?.through(database.url) ?? database.url }),
            ...more,
          },
        })
      },
      async stop() {
        const { code } = await program().stop()
        running = undefined
        return code
      },
      async kill9() {
        await program().stop('SIGKILL')
        running = undefined
      },
      async readiness() {
        const { child, output } = program()
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(
            `replica ${n} ended by itself (${child.exitCode ?? child.signalCode}): ${output.stderr.slice(-4000)}`,
          )
        const { status, body } = await sendRequest(target, { method: 'GET', path: '/readyz' })
        return { status, body: JSON.parse(body) }
      },
    }
  }

  // The first makes what the others find.
  await replicas[0]!.start()
  await Promise.all(replicas.slice(1).map((replica) => replica.start()))
  const nginx = await startNginx(t, {
    port,
    certificate: world.certificate,
    servers: replicas.map(({ target }) => `server unix:${target.socketPath} max_fails=0;`),
  })
  const front: Target = { origin: world.env.MCP_PUBLIC_URL!, ca: world.certificate.cert }
  await untilReady(front)
  const at = (replica: number | null) => (replica === null ? front : replicas[replica]!.target)

  return {
    world,
    nginx,
    replicas,
    /** Of the state, where it is on PostgreSQL. */
    database,
    /** nginx; what `null` is below. */
    front,
    /** What a tool answered, at one replica or by way of nginx. Rejects when no whole answer came, and for any status but 200. */
    callTool: (replica: number | null, token: string, name: string, args: object = {}, more: CallOptions = {}) =>
      callTool(at(replica), token, name, args, more),
    confirm: (replica: number | null, token: string, body: unknown): Promise<Answer & { json: Json }> =>
      confirm(at(replica), token, body),
    /** Stops each and starts it again, one after the other; all exit codes. */
    async roll(env: Record<string, string | undefined> = {}): Promise<(number | null)[]> {
      const codes: (number | null)[] = []
      for (const replica of replicas) {
        codes.push(await replica.stop())
        await replica.start(env)
      }
      return codes
    },
    /** All entries of the audit logs. */
    auditEntries: () => replicas.flatMap(({ auditPath }) => world.auditEntries(auditPath)),
  }
}

/** Every replica says that its database is gone. */
export async function allNotice(t: TapTest, { replicas }: Replicas): Promise<void> {
  for (const { readiness } of replicas) {
    const { body } = await found(async () => {
      const seen = await readiness()
      return seen.status === 503 && seen
    }, 'a replica says that it is not ready')
    partial(t, body, { status: 'unavailable', check: 'state database' })
  }
}

/** Every replica is ready again, by itself. */
export async function allReady({ replicas }: Replicas): Promise<void> {
  for (const { readiness } of replicas)
    await found(async () => (await readiness()).status === 200, 'a replica is ready')
}
