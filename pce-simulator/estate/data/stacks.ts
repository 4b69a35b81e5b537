import { PROCESSES, type Process } from './processes.js'

export type Os = 'linux' | 'windows'

/** A tier, which is one layer of an application. All hosts of a tier have the same role. */
export interface Tier {
  role: string
  os: Os
  /** The TCP port on which the hosts of this tier listen. */
  port: number
  listener: Process
  /** The process with which the tier's hosts connect to other tiers and applications. */
  client: Process
  /** The share of the application's hosts that belong to this tier, relative to the other tiers. */
  share: number
}

export interface Stack {
  tiers: readonly Tier[]
  /** The pairs of tiers that communicate. Each tier is identified by its role. */
  edges: readonly (readonly [from: string, to: string])[]
  /** The role of the tier that other applications and people call. */
  entry: string
  /** The role of the tier whose hosts call other applications. */
  caller: string
}

const { nginx, apache, php, java, node, python, postgres, mysql, mongo, redis, kafka, oracle, iis, dotnet, mssql } =
  PROCESSES

const tier = (role: string, port: number, listener: Process, client: Process, share: number): Tier => ({
  role,
  os: listener.path.startsWith('/') ? 'linux' : 'windows',
  port,
  listener,
  client,
  share,
})

const web = tier('web', 443, nginx, nginx, 3)
const sqlDb = tier('db', 5432, postgres, postgres, 2)
const cache = tier('cache', 6379, redis, redis, 1)

export const STACKS = {
  commerce: {
    tiers: [web, tier('api', 8443, java, java, 3), sqlDb, cache],
    edges: [
      ['web', 'api'],
      ['api', 'db'],
      ['api', 'cache'],
      ['db', 'db'],
    ],
    entry: 'web',
    caller: 'api',
  },
  events: {
    tiers: [
      tier('api', 8443, java, java, 3),
      tier('worker', 9000, python, python, 3),
      tier('queue', 9092, kafka, kafka, 2),
      sqlDb,
    ],
    edges: [
      ['api', 'queue'],
      ['api', 'db'],
      ['worker', 'queue'],
      ['worker', 'db'],
      ['queue', 'queue'],
    ],
    entry: 'api',
    caller: 'worker',
  },
  node: {
    tiers: [web, tier('api', 3000, node, node, 3), tier('db', 27017, mongo, mongo, 2), cache],
    edges: [
      ['web', 'api'],
      ['api', 'db'],
      ['api', 'cache'],
    ],
    entry: 'web',
    caller: 'api',
  },
  lamp: {
    tiers: [tier('web', 443, apache, php, 3), tier('db', 3306, mysql, mysql, 1)],
    edges: [['web', 'db']],
    entry: 'web',
    caller: 'web',
  },
  dotnet: {
    tiers: [tier('web', 443, iis, iis, 2), tier('app', 5001, dotnet, dotnet, 2), tier('db', 1433, mssql, mssql, 1)],
    edges: [
      ['web', 'app'],
      ['app', 'db'],
    ],
    entry: 'web',
    caller: 'app',
  },
  batch: {
    tiers: [tier('worker', 8080, java, java, 3), tier('db', 1521, oracle, oracle, 2)],
    edges: [
      ['worker', 'db'],
      ['worker', 'worker'],
    ],
    entry: 'worker',
    caller: 'worker',
  },
  tool: {
    tiers: [tier('app', 8080, java, java, 2), sqlDb],
    edges: [['app', 'db']],
    entry: 'app',
    caller: 'app',
  },
} as const satisfies Record<string, Stack>

export type StackName = keyof typeof STACKS
