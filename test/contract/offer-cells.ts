/** The cells of the matrix of offers: what is offered in each follows from the contract, not from the tools (D121 to D124). */
import type { Test } from 'tap'
import type { OfferConfig } from '../../schemas/config.js'
import { tools as everyTool } from '../../tools/index.js'
import { CONTRACT, DEFAULT_NAMES, NAMES, namesOf } from '../surface/contract.js'
import { insecureApp, parseEvents, request } from './insecure-app.js'
import { startService, type Json } from './authenticated-service.js'

/** The tools of the contract; surface.test.ts says which tool has no entry there. */
const tools = everyTool.filter(({ name }) => name in CONTRACT)
/** The names of all tools. */
export const ALL = NAMES
const READS = namesOf(({ mutating }) => !mutating)
const setOf = (...names: string[]) => namesOf(({ toolset }) => names.includes(toolset))
const only = (some: readonly string[]) => ALL.filter((name) => some.includes(name))
const but = (...some: string[]) => ALL.filter((name) => !some.includes(name))

export type Role = 'reader' | 'operator' | 'admin' | null
const permitted = (role: Role) => namesOf(({ roles }) => role !== null && roles.includes(role))

/** What the operator sets, with what is offered by it. */
export const SETTINGS: [OfferConfig, string[]][] = [
  [{}, DEFAULT_NAMES],
  [{ toolsets: ['default'] }, DEFAULT_NAMES],
  [{ toolsets: ['all'], excluded: ['provision-policy', 'get-events'] }, but('provision-policy', 'get-events')],
  [{ toolsets: ['traffic', 'rules'] }, only(setOf('traffic', 'rules'))],
  [
    { toolsets: ['provisioning', 'server'], tools: ['provision-policy', 'get-labels', 'get-events'] },
    ['get-events', 'provision-policy'],
  ],
  [
    { tools: ['get-labels', 'create-label', 'ringfence-batch'] },
    only(['get-labels', 'create-label', 'ringfence-batch']),
  ],
]

/** What a client sends, with what that leaves of everything. */
const HEADERS: [Record<string, string>, string[]][] = [
  [{}, ALL],
  [{ 'x-mcp-readonly': 'true' }, READS],
  [{ 'x-mcp-toolsets': 'rules, provisioning' }, setOf('rules', 'provisioning')],
  [{ 'x-mcp-tools': 'get-labels,provision-policy', 'x-mcp-toolsets': '' }, ['get-labels', 'provision-policy']],
  [
    { 'X-MCP-Toolsets': 'all', 'X-MCP-Exclude-Tools': 'get-labels,ringfence-batch', 'X-MCP-Readonly': '0' },
    but('get-labels', 'ringfence-batch'),
  ],
]

type Post = (body: unknown, headers: Record<string, string>) => Promise<{ statusCode: number; body: string }>

/** The largest batch that the server takes. */
const MAX_BATCH = 100

/** Returns the answers to a batch. One that takes longer than five seconds is a stream. */
const answersIn = ({ body }: { body: string }): Json[] =>
  body.startsWith('[') ? (JSON.parse(body) as Json[]) : parseEvents(body).events.map(({ data }): Json => data)

/** What a caller finds: the tools that are listed, those that a call reaches as far as its arguments, and those that it is forbidden. */
async function look(post: Post, headers: Record<string, string>) {
  const requests = [
    request('tools/list', {}, 'list'),
    // No tool has such an argument, so that none runs.
    ...ALL.map((name) => request('tools/call', { name, arguments: { 'no such argument': 1 } }, name)),
  ]
  const answers: Json[] = []
  for (let from = 0; from < requests.length; from += MAX_BATCH)
    answers.push(...answersIn(await post(requests.slice(from, from + MAX_BATCH), headers)))
  const errorOf = ({ result, error }: Json): string => error?.data.error ?? JSON.parse(result.content[0].text).error
  const found: Record<string, string[]> = {}
  for (const one of answers.filter(({ id }) => id !== 'list')) (found[errorOf(one)] ??= []).push(one.id)
  const listed = answers.find(({ id }) => id === 'list').result.tools as { name: string }[]
  return { listed: listed.map(({ name }) => name), found }
}

const sorted = (names: readonly string[]) => [...names].sort()
const both = (some: readonly string[], others: readonly string[]) => some.filter((name) => others.includes(name))

/** A server of its own without a login, asked with every kind of header. */
export async function lookWithoutLogin(t: Test, [setting, offered]: (typeof SETTINGS)[number], readOnly: boolean) {
  const { app, post } = await insecureApp(tools, { offer: { ...setting, readOnly } })
  t.teardown(() => app.close())
  for (const [headers, left] of HEADERS) {
    const expected = sorted(both(both(offered, left), readOnly ? READS : ALL))
    const { listed, found } = await look(post, headers)
    const cell = JSON.stringify({ readOnly, setting, headers })
    t.same(listed, expected, `listed: ${cell}`)
    t.same(sorted(found['unknown_tool'] ?? []), but(...expected), `unknown: ${cell}`)
    t.equal(found['forbidden'], undefined, cell)
  }
}

/** A server of its own with a login, asked by everybody with every kind of header. */
export async function lookWithLogin(
  t: Test,
  mode: 'shared' | 'per_user',
  [setting, offered]: (typeof SETTINGS)[number],
  { readOnly, hideForbidden }: { readOnly: boolean; hideForbidden: boolean },
) {
  // Whichever toolsets are chosen, users can bring their key, except where tools are named one by one.
  const keysUnless = (named: unknown) => (mode === 'per_user' && named === undefined ? setOf('credentials') : [])
  const atServer = [...offered, ...keysUnless(setting.tools)]
  const { send, tokenOf } = await startService(t, { mode, config: { offer: { ...setting, readOnly, hideForbidden } } })
  for (const role of ['reader', 'operator', 'admin', null] as const) {
    const token = await tokenOf('ann', role)
    for (const [headers, left] of HEADERS) {
      const reading = readOnly || headers['x-mcp-readonly'] === 'true'
      const atClient = [...left, ...keysUnless(headers['x-mcp-tools'])]
      const expected = sorted(both(both(reading ? READS : ALL, atServer), atClient))
      const { listed, found } = await look((body, more) => send(token, body, { headers: more }), headers)
      const cell = JSON.stringify({ mode, readOnly, hideForbidden, setting, role, headers })
      t.same(listed, hideForbidden ? both(expected, permitted(role)) : expected, `listed: ${cell}`)
      t.same(sorted(found['unknown_tool'] ?? []), but(...expected), `unknown: ${cell}`)
      const forbidden = [...(found['forbidden'] ?? []), ...(found['forbidden_no_role'] ?? [])]
      t.same(
        sorted(forbidden),
        expected.filter((name) => !permitted(role).includes(name)),
        `forbidden: ${cell}`,
      )
    }
  }
}
