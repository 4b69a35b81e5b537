/**
 * Limited reading (`reads` in MCP_SCOPES_FILE), over HTTP against a simulated PCE: one estate in which everything outside
 * is marked, and a reader of one application, who is shown no mark by any tool that reads.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { Type } from '@sinclair/typebox'
import t, { type Test } from 'tap'
import { parseScopes } from '../../domain/scopes/parse-scopes.js'
import { dataOf } from '../../tools/catalogue/catalogue-of.js'
import { defineTool, type AnyTool } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import type { Json } from '../contract/authenticated-service.js'
import { compiled } from '../suite-folder.js'
import { NOW } from '../tools/harness.js'
import { LABEL, limitedEstate, MARK, SERVICES } from './limited-estate.js'
import { READING } from './reading-calls.js'
import { startScoped } from './scoped-service.js'

const GROUPS = {
  payments: { scopes: [{ app: 'payments' }], reads: 'scoped' },
  nothing: { scopes: [{ app: 'nowhere' }], reads: 'scoped' },
  writers: { scopes: [{ app: 'payments' }] },
  core: { scopes: '*' },
}
const LIMIT = ['app=payments']

/** A tool that does not say how its answers are limited, and one whose functions get no limited client. */
const undeclared = (more: object): AnyTool =>
  defineTool({
    name: 'get-labels',
    summary: 'Reads.',
    effect: 'read',
    toolset: 'inventory',
    roles: ['admin'],
    requiresPce: true,
    requiresConfirm: false,
    input: Type.Object({}),
    output: Type.Object({}),
    example: {},
    handler: () => Promise.resolve({}),
    ...more,
  })

/** A service on the estate with something outside pending, at the time that the estate is of. */
async function start(t: Test, more: Parameters<typeof startScoped>[4] = {}) {
  const service = await startScoped(t, GROUPS, limitedEstate(), tools, { now: () => NOW, pollsUntilDone: 1, ...more })
  for (const one of SERVICES) t.equal((await service.call('core', 'create-virtual-service', one)).error, undefined)
  for (const [name, description] of [
    ['FOREIGN set', 'FOREIGN change'],
    ['Payments', 'Ours'],
  ])
    t.equal((await service.call('core', 'update-ruleset', { name, description })).error, undefined)
  return service
}

function marksIn(answer: Json, args: object, labels = false): string[] {
  let text = JSON.stringify(answer)
  // An error may repeat what its caller wrote.
  for (const value of Object.values(args))
    if (typeof value === 'string') text = text.replaceAll(value.replace('workload:', ''), '')
  return [MARK, ...(labels ? [] : [LABEL])].filter((mark) => text.includes(mark))
}

/** Calls a tool as the limited reader and as somebody who reads all, and compares what they are shown. */
async function compare(t: Test, name: string, { call }: Pick<Awaited<ReturnType<typeof start>>, 'call'>) {
  for (const { args, error, plain, labels } of READING[name]!) {
    const [limited, whole] = await Promise.all([call('payments', name, args), call('core', name, args)])
    const said = `${name} ${JSON.stringify(args)}`
    t.equal(limited.error, error, said)
    t.same(limited.reads_limited_to, LIMIT, `${said} says that it is limited`)
    t.same(marksIn(limited, args, labels), [], `${said} shows nothing outside`)
    t.same([whole.error, whole.reads_limited_to], [undefined, undefined], `${said} is answered to others`)
    t.equal(marksIn(whole, {}).length > 0, plain !== true, `${said} is marked for others`)
    if (error === 'out_of_scope') t.notMatch(limited.hint, /written/, `${said} is not about writing`)
  }
}

t.setTimeout(0)
t.test('a limited reader', async (t) => {
  const service = await start(t)
  const { call, sendCall, ask, audit, send, tokenOf, signFor, path, app } = service
  const reading = tools.filter(({ effect, requiresPce }) => effect === 'read' && requiresPce)
  t.same(
    Object.keys(READING),
    reading.map(({ name }) => name),
    'every tool that reads is called',
  )
  for (const { name } of reading) t.test(name, (t) => compare(t, name, service))

  t.test('sees what is inside', async (t) => {
    const { total, returned } = await call('payments', 'get-workloads', {})
    t.same([total, returned], [2, 2], 'and totals count only that')
    t.equal((await call('payments', 'get-workloads', { name: 'pay1' })).total, 1)
    t.same(
      (await call('payments', 'get-rulesets', {})).rulesets.map(({ name, rules }: Json) => [name, rules.length]),
      [
        ['Payments', 2],
        ['To the outside', 1],
      ],
    )
    const { changes, total_unfiltered: pending } = await call('payments', 'compare-draft-active', {})
    const names = Object.values(changes as Record<string, Json[]>).flatMap((list) => list.map(({ name }) => name))
    t.same([pending, names.sort()], [2, ['Payments', 'ours-service']])
  })

  t.test('with scopes that no label has sees nothing', async (t) => {
    t.equal((await call('nothing', 'get-workloads', {})).total, 0)
    t.equal((await call('nothing', 'get-rulesets', {})).total_count, 0)
  })

  t.test('is not told what a write outside would touch, but the audit log is', async (t) => {
    const named = { name: 'FOREIGN-web', description: 'x' }
    t.equal((await call('payments', 'update-workload', named)).error, 'not_found', 'as if it did not exist')
    const href = '/orgs/1/workloads/00000000-0000-4000-8000-000000000004'
    const answer = await call('payments', 'update-workload', { href, description: 'x' })
    t.equal(answer.error, 'out_of_scope')
    t.same(marksIn(answer, {}), [])
    const { reason, outside } = audit.at(-1)!
    t.same(
      { reason, outside },
      { reason: 'out_of_scope', outside: { kind: 'workloads', href, rule: 'workload_labels' } },
    )
    t.same((await ask('payments', 'update-workload', { name: 'pay1', description: 'x' }))[0], 'ok')
  })

  const rpc = async (method: string, params: object): Promise<Json> =>
    JSON.parse((await send(await tokenOf('payments'), { jsonrpc: '2.0', id: 1, method, params })).payload).result

  t.test('in pages about the estate', async (t) => {
    for (const app of ['payments', LABEL]) {
      const page = JSON.stringify(await rpc('resources/read', { uri: `illumio://application/${app}/prod` }))
      t.notMatch(page, MARK)
      t.match(page, /reads_limited_to/, app)
    }
    const { resources } = await rpc('resources/list', {})
    for (const { uri } of resources) t.notMatch(JSON.stringify(await rpc('resources/read', { uri })), MARK, uri)
  })

  t.test('in completions, which are labels that everybody shares', async (t) => {
    const { resourceTemplates } = await rpc('resources/templates/list', {})
    const completed: Record<string, string[]> = {}
    for (const { uriTemplate: uri } of resourceTemplates)
      for (const [, name] of uri.matchAll(/\{(\w+)\}/g)) {
        const params = { ref: { type: 'ref/resource', uri }, argument: { name, value: '' } }
        completed[name] = (await rpc('completion/complete', params)).completion.values
      }
    t.same(completed, { id: [], app: ['crm', LABEL, 'payments'], env: ['prod'] })
  })

  t.test('in prompts', async (t) => {
    const { prompts } = await rpc('prompts/list', {})
    t.ok(prompts.length > 0)
    for (const { name, arguments: takes } of prompts) {
      const args = Object.fromEntries(takes.map((one: Json) => [one.name, 'x']))
      t.notMatch(JSON.stringify(await rpc('prompts/get', { name, arguments: args })), MARK, name)
      for (const one of takes) {
        const params = { ref: { type: 'ref/prompt', name }, argument: { name: one.name, value: MARK } }
        t.same((await rpc('completion/complete', params)).completion.values, [], `${name} ${one.name}`)
      }
    }
  })

  t.test('reads all with another group, and as before where nothing is said', async (t) => {
    const token = await signFor('both', 'admin', { groups: ['g-admin', 'payments', 'writers'] })
    for (const who of [token, await tokenOf('writers'), await tokenOf('strangers')]) {
      const { total, reads_limited_to: limit } = await sendCall(who, 'get-workloads', {})
      t.same([total, limit], [7, undefined])
    }
  })

  t.test('is whoever is in no group where the file says so, and on SIGHUP', async (t) => {
    writeFileSync(
      path,
      JSON.stringify({
        reads: 'scoped',
        groups: { ...GROUPS, writers: { scopes: [{ app: 'payments' }], reads: 'all' } },
      }),
    )
    await app.reloadScopes?.()
    const total = async (group: string) => (await call(group, 'get-workloads', {})).total
    t.same([await total('strangers'), await total('writers'), await total('core')], [0, 7, 7])
    const lost = await signFor('lost', null, { groups: undefined, roles: ['g-admin'], hasgroups: true })
    writeFileSync(path, JSON.stringify({ groups: GROUPS }))
    await app.reloadScopes?.()
    t.equal((await sendCall(lost, 'get-workloads', {})).total, 0, 'nor does who lost the groups read more')
  })
})

t.test('in per-user mode, on top of what the PCE shows to the key', async (t) => {
  const service = await start(t, { mode: 'per_user' })
  for (const name of [
    'get-workloads',
    'get-rulesets',
    'get-traffic-flows',
    'explain-flow',
    'get-events',
    'review-draft',
  ])
    await compare(t, name, service)
})

t.test('in worker threads', async (t) => {
  let threads = 0
  const count = () => void (threads += 1)
  subscribe('worker_threads', count)
  t.teardown(() => unsubscribe('worker_threads', count))
  const service = await start(t, { worker: pathToFileURL(compiled('programs/worker.ts')) })
  for (const { name, isHeavy, reads } of tools)
    if (isHeavy === true && name in READING && reads !== 'everything') await compare(t, name, service)
  t.ok(threads > 0)
})

t.test('a tool that does not say how it is limited refuses limited readers', async (t) => {
  for (const tool of [undeclared({}), undeclared({ reads: 'shown' })]) {
    const { call } = await startScoped(t, GROUPS, limitedEstate(), [tool])
    const { error, rule, reads_limited_to: limit } = await call('payments', 'get-labels', {})
    t.same([error, rule, limit], ['out_of_scope', 'reads', LIMIT])
    t.equal((await call('core', 'get-labels', {})).error, undefined)
  }
  t.throws(() => dataOf(undeclared({})), /has no `reads`/)
})

t.test('what the file says of reading is checked', (t) => {
  t.same(parseScopes('{"groups":{"a":{"scopes":"*","reads":"some"}},"reads":1}'), {
    faults: ['/reads: Expected union value', '/groups/a/reads: Expected union value'],
  })
  t.end()
})
