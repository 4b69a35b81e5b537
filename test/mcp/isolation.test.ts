/** Nobody sees what belongs to another: many callers at once, over connections that stay open, in both eras. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Type } from '@sinclair/typebox'
import t from 'tap'
import { createPoster } from '../../scripts/bench/callers.js'
import { ToolError } from '../../schemas/errors.js'
import { defineTool } from '../../tools/define.js'
import { startService } from '../contract/authenticated-service.js'
import { openTool, parseEvents } from '../contract/insecure-app.js'

const CALLERS = 50
const CALLS = 20
const MODERN_META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** Answers, reports and fails in the name of whoever calls, some turns later. */
const tool = defineTool({
  ...openTool,
  name: 'who',
  effect: 'read',
  input: Type.Object({ turns: Type.Integer(), mark: Type.String(), fails: Type.Boolean() }),
  output: Type.Object({ sub: Type.String(), mark: Type.String(), request: Type.String() }),
  async handler({ turns, mark, fails }, context) {
    const { caller, requestId } = context
    const own = `${caller.sub} ${mark}`
    for (let turn = 0; turn < turns; turn++) {
      await nextTurn()
      context.progress({ progress: turn, message: own })
    }
    if (fails) throw new ToolError('not_found', own)
    return { sub: caller.sub!, mark, request: requestId }
  },
  example: { turns: 0, mark: '', fails: false },
})

t.test(`${CALLERS * CALLS} calls of ${CALLERS} callers, none of which gets anything of another`, async (t) => {
  const { app, tokenOf, audit } = await startService(t, { mode: 'shared', tools: [tool] })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  let foreign = 0
  const seen = new Set<string>()

  const people = await Promise.all(
    Array.from({ length: CALLERS }, async (_, at) => {
      const sub = `person-${at}`
      return { sub, isModern: at % 2 === 0, poster: createPoster(url, await tokenOf(sub, 'reader')) }
    }),
  )
  await Promise.all(
    people.map(async ({ sub, isModern, poster }, at) => {
      for (let call = 0; call < CALLS; call++) {
        // The same ids, marks and tokens for all, so that only the connection tells whose an answer is.
        const fails = (at + call) % 5 === 0
        const token = `progress-${call}`
        const hasProgress = call % 3 === 0
        const params = {
          name: 'who',
          arguments: { turns: (at * 7 + call * 3) % 11, mark: `${call}`, fails },
          _meta: { ...(isModern && MODERN_META), ...(hasProgress && { progressToken: token }) },
        }
        const headers: Record<string, string> = isModern
          ? { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'who' }
          : {}
        const text = await poster.send('/mcp', { jsonrpc: '2.0', id: call, method: 'tools/call', params }, headers)
        const messages = text.startsWith('{') ? [JSON.parse(text)] : parseEvents(text).events.map(({ data }) => data)
        for (const message of messages) {
          if (message.method !== undefined) {
            const { progressToken, message: said = `${sub} ${call}` } = message.params as Record<string, unknown>
            if (progressToken !== token || said !== `${sub} ${call}`) foreign++
            continue
          }
          const { isError = false, structuredContent, content } = message.result
          const answer = structuredContent ?? JSON.parse(content[0].text)
          const isOwn = fails ? answer.message === `${sub} ${call}` : answer.sub === sub && answer.mark === `${call}`
          if (message.id !== call || isError !== fails || !isOwn) foreign++
          seen.add(String(fails ? answer.request_id : answer.request))
        }
      }
      poster.close()
    }),
  )
  t.equal(foreign, 0)
  t.equal(seen.size, CALLERS * CALLS, 'each call has an id of its own')
  const entries = audit.filter(({ phase }) => phase === 'outcome')
  t.equal(entries.length, CALLERS * CALLS)
  t.equal(new Set(entries.map(({ sub }) => sub)).size, CALLERS)
})
