/** A small PCE that answers from lists, for forms of objects that the simulator does not have. */
import type { Test } from 'tap'
import { startGateway, type Strike } from '../pce-client/faults/faulty-gateway.js'
import { startServer, type Reply, type TestServer } from '../pce-client/support.js'
import { benchOf, startBench, type Bench, type Json } from './harness.js'

export interface ListedPce {
  /** By path below the organisation; rule sets and the like by `sec_policy/…` without a version. Others are empty. */
  lists: Readonly<Record<string, readonly Json[]>>
  /** Rows of every traffic query. */
  rows?: readonly Json[]
  /** What the PCE answers at a path below the organisation that is no list. */
  objects?: Readonly<Record<string, Json>>
  /** Statuses with which the PCE refuses a list. */
  refused?: Readonly<Record<string, number>>
}

export interface ListedBench extends Bench {
  /** The bodies of the traffic queries that were asked. */
  queries: () => Json[]
  /** Paths with their queries, below the organisation, of what was read. */
  reads: () => string[]
  /** Paths below the organisation of what was put, such as traffic queries for whose rows draft decisions were asked. */
  updates: () => string[]
  /** Every request with its body, as `METHOD path body`. */
  sent: () => string[]
}

/** Every tool against such a PCE. Lists filter by `name`, by `labels` and by nothing else. */
export async function startListed(t: Test, pce: ListedPce): Promise<ListedBench> {
  const { simulator } = await startBench(t, { workloads: 20, flows: 0 })
  const { server, jobs } = await serveLists(t, pce)
  return {
    ...benchOf(t, simulator, `http://127.0.0.1:${server.port}`),
    queries: () => jobs,
    reads: () => server.requests().flatMap((request) => /^GET \/orgs\/1\/(.*)$/.exec(request)?.[1] ?? []),
    updates: () => server.requests().flatMap((request) => /^PUT \/orgs\/1\/(.*)$/.exec(request)?.[1] ?? []),
    sent: () => server.seen.map(({ method, path, body }) => `${method} ${path} ${body}`),
  }
}

export interface FaultyBench extends Bench {
  /** Makes requests go wrong from now on; null stops it. */
  begin(strike: Strike | null): void
  /** How many have gone wrong since. */
  struck(): number
}

/** Starts a bench like `startListed`, with a gateway in front of the PCE that answers the faults it is given. */
export async function startFaulty(t: Test, pce: ListedPce): Promise<FaultyBench> {
  const { simulator } = await startBench(t, { workloads: 20, flows: 0 })
  const { server } = await serveLists(t, pce)
  const gateway = await startGateway(t, server.port)
  const bench = benchOf(t, simulator, `http://127.0.0.1:${gateway.port}`)
  return { ...bench, begin: (strike) => gateway.begin(strike), struck: () => gateway.struck() }
}

async function serveLists(
  t: Test,
  { lists, objects = {}, rows = [], refused = {} }: ListedPce,
): Promise<{ server: TestServer; jobs: Json[] }> {
  const jobs: Json[] = []
  const QUERIES = '/orgs/1/traffic_flows/async_queries'

  const listed = (path: string, query: URLSearchParams): Reply => {
    const version = /\/sec_policy\/(draft|active|\d+)\//.exec(path)?.[1]
    const key = path.replace('/orgs/1/', '').replace(/^sec_policy\/(?:draft|active|\d+)\//, 'sec_policy/')
    if (refused[key] !== undefined)
      return { status: refused[key], body: [{ token: 'refused', message: `no ${key} here` }] }
    if (objects[path.replace('/orgs/1/', '')] !== undefined) return { body: objects[path.replace('/orgs/1/', '')] }
    const spell = (value: unknown) =>
      JSON.parse(JSON.stringify(value).replaceAll('/sec_policy/draft/', `/sec_policy/${version}/`)) as Json
    const one = Object.values(lists)
      .flat()
      .find(({ href }) => href === path || (version !== undefined && spell(href) === path))
    if (one !== undefined) return { body: version === undefined ? one : spell(one) }
    const [name, labels] = [query.get('name'), query.get('labels')]
    const found = (lists[key] ?? []).filter((item) => {
      const own = new Set((item.labels ?? []).map(({ href }: Json) => href))
      const alternatives = labels === null ? [[]] : (JSON.parse(labels) as (string | string[])[])
      return (
        (name === null || String(item.name).includes(name)) &&
        alternatives.some((all) => [all].flat().every((href) => own.has(href)))
      )
    })
    const body = version === undefined ? found : spell(found)
    return { body, headers: { 'x-total-count': String(found.length) } }
  }

  const server = await startServer(t, ({ method, path: url, body }) => {
    const { pathname: path, searchParams } = new URL(url, 'http://pce')
    if (path === QUERIES && method === 'POST') {
      const href = `${QUERIES}/${jobs.length + 1}`
      jobs.push(JSON.parse(body))
      return { status: 202, body: { href, status: 'queued' }, headers: { location: href } }
    }
    if (path.startsWith(QUERIES) && path.endsWith('/download')) return { body: rows }
    if (path.startsWith(`${QUERIES}/`)) {
      const counts = { flows_count: rows.length, matches_count: rows.length }
      const rules = { status: 'completed', href: `${path}/update_rules` }
      return { body: { href: path, status: 'completed', result: `${path}/download`, rules, ...counts } }
    }
    if (path === '/product_version') return { body: { version: '25.2.40', build: '1' } }
    return method === 'GET' ? listed(path, searchParams) : { status: 204 }
  })
  return { server, jobs }
}
