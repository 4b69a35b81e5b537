/** What a first call loads (D251), and what is loaded before it (D253). */
import { Type } from '@sinclair/typebox'
import t from 'tap'
import type { ServerLog } from '../../plugins/dispatcher/call.js'
import { createDispatcher } from '../../plugins/dispatcher/dispatch.js'
import { createCallTracker } from '../../plugins/dispatcher/run-handler.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import { defineTool } from '../../tools/define.js'
import { changeTool, type ListedTool } from '../../tools/listed-tool.js'
import { noCredentials } from '../tools/harness.js'
import { openTool } from './insecure-app.js'

const NAMES = ['first', 'second', 'third']

/** A dispatcher of three tools whose code is loaded as `load` says; `loads` has the order in which that is asked for. */
function createServer(load: (name: string) => Promise<void>, change = (tool: ListedTool) => tool) {
  const loads: string[] = []
  const failures: unknown[] = []
  const log: ServerLog = { debug() {}, info() {}, warn() {}, error: (facts) => void failures.push(facts) }
  const tools = NAMES.map((name) =>
    defineTool({
      ...openTool,
      name,
      effect: 'read',
      input: Type.Object({}, { additionalProperties: false }),
      output: Type.Object({ name: Type.String() }),
      handler: () => Promise.resolve({ name }),
    }),
  )
  const listed = catalogueOf(tools).map((tool) => ({
    ...tool,
    load: async () => {
      loads.push(tool.name)
      await load(tool.name)
      return tool.load()
    },
  }))
  const dispatcher = createDispatcher({
    tools: listed.map(change),
    gates: [],
    audit: null,
    log,
    limits: { responseBudgetBytes: 1000, trafficQueryTimeoutSeconds: 1, trafficMaxParts: 64 },
    callTracker: createCallTracker(),
    server: { name: 'x', version: '1', changelog: () => Promise.resolve(null) },
    now: () => 0,
  })
  const call = async (name: string) => {
    const result = await dispatcher.dispatch(
      { name, arguments: {}, requestId: `call of ${name}`, sender: new AbortController(), progress() {} },
      {
        caller: { mode: 'stdio', role: 'admin', iss: null, sub: null },
        transport: 'stdio',
        credentials: noCredentials,
        pce: null,
      },
    )
    return result.ok ? result.value : result.error
  }
  return { dispatcher, call, loads, failures }
}

const unreadable = new Error('the disk is gone')
const CANNOT_LOAD = {
  code: 'internal',
  message:
    'The code of second cannot be loaded, so nothing was done. The log has the reason: install this server again, and restart it.',
  details: {},
}

t.test('a tool that cannot be loaded is an error of its call, and of no other', async (t) => {
  let isReadable = false
  const load = (name: string) => (name === 'second' && !isReadable ? Promise.reject(unreadable) : Promise.resolve())
  const server = createServer(load, (tool) => changeTool(tool, {}))
  t.same(await server.call('second'), CANNOT_LOAD)
  t.same(await server.call('first'), { name: 'first' })
  const { request_id: requestId, err } = server.failures[0] as { request_id: string; err: Error }
  t.same([requestId, err.cause], ['call of second', unreadable], 'the log has the reason, under the id of the request')

  isReadable = true
  t.same(await server.call('second'), { name: 'second' }, 'the next call tries again')
})

t.test('what is warmed up', async (t) => {
  t.test('goes on after a tool that cannot be loaded, and is not loaded twice', async (t) => {
    let running = 0
    const server = createServer(async (name) => {
      running += 1
      await Promise.resolve()
      t.equal(running, 1, 'one part after the other')
      running -= 1
      if (name === 'second') throw unreadable
    })
    await server.dispatcher.warmUp(['first', 'nobody knows this', 'second', 'third'])
    t.same(server.loads, NAMES)
    t.same(server.failures, [], 'a tool that nobody has called is no failure yet')

    t.same(await server.call('third'), { name: 'third' })
    t.same(server.loads, NAMES, 'the call has nothing left to load')
    t.same(await server.call('second'), CANNOT_LOAD)
    t.same(server.loads, [...NAMES, 'second'])
  })

  t.test('a call does not wait for the rest of it', async (t) => {
    let release = () => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    const server = createServer((name) => (name === 'first' ? held : Promise.resolve()))
    const warm = server.dispatcher.warmUp(NAMES)
    t.same(await server.call('third'), { name: 'third' })
    release()
    await warm
    t.same(server.loads.toSorted(), NAMES, 'and what the call has loaded is not loaded again')
  })

  t.test('ends with the process', async (t) => {
    const server = createServer((name) => {
      if (name === 'first') server.dispatcher.abortAll()
      return Promise.resolve()
    })
    await server.dispatcher.warmUp(NAMES)
    t.same(server.loads, ['first'])
  })
})
