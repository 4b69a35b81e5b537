import { Type, type Static } from '@sinclair/typebox'
import { boundTo, carryOut, preview, requestsOf, venChoiceInput, type VenCall } from '../answers/vens/carry-out.js'
import { VenActionOutput } from '../answers/vens/show-ven-action.js'
import { defineTool } from '../define.js'

/** Maximum number of VENs in one call, because each report is large and takes a request of its own. */
const MOST_VENS = 20

const input = Type.Object(venChoiceInput(MOST_VENS), { additionalProperties: false })

const callOf = (args: Static<typeof input>): VenCall => ({ action: { kind: 'report' }, args, most: MOST_VENS })

export default defineTool({
  name: 'request-ven-support-reports',
  summary: 'Have VENs make support reports, which are downloaded in the console of the PCE.',
  effect: 'write',
  scope: 'objects',
  toolset: 'vens-plus',
  roles: ['admin'],
  requiresPce: true,
  requiresConfirm: true,
  isHeavy: true,
  pceRequests: { atMost: 14, and: 'two for each VEN and up to three for each name' },
  input,
  output: VenActionOutput,
  example: { workloads: ['payments-db-1'], dry_run: true },
  boundTo: (args, ctx) => boundTo(ctx, callOf(args)),
  preview: (args, ctx) => preview(ctx, callOf(args)),
  plan: (args, ctx) => requestsOf(ctx, callOf(args)),
  handler: (args, ctx) => carryOut(ctx, callOf(args)),
})
