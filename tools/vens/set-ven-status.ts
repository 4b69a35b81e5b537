import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from '../../schemas/common.js'
import { MODE_CHANGE_DAYS } from '../../domain/readiness/judge-mode-change.js'
import { windowInput } from '../../domain/traffic/traffic-window.js'
import { boundTo, carryOut, preview, requestsOf, venChoiceInput, type VenCall } from '../answers/vens/carry-out.js'
import { VenActionOutput } from '../answers/vens/show-ven-action.js'
import { defineTool } from '../define.js'

/** Maximum number of VENs in one call, because each takes a request of its own and the traffic query lists them all. */
const MOST_VENS = 100

const input = Type.Object(
  {
    ...venChoiceInput(MOST_VENS),
    status: StringEnum(['suspended', 'active'] as const, { description: 'active: ends a suspension' }),
    lookback_days: windowInput(MODE_CHANGE_DAYS).lookback_days,
  },
  { additionalProperties: false },
)

const callOf = ({ status, ...args }: Static<typeof input>): VenCall => ({
  action: { kind: status === 'suspended' ? 'suspend' : 'resume' },
  args,
  most: MOST_VENS,
})

export default defineTool({
  name: 'set-ven-status',
  summary: 'Mark VENs as suspended, or active again, and judge what stops or begins being enforced.',
  effect: 'destroy',
  scope: 'objects',
  toolset: 'vens-plus',
  idempotent: true,
  roles: ['admin'],
  requiresPce: true,
  requiresConfirm: true,
  isHeavy: true,
  pceRequests: {
    atMost: 14,
    and: 'three for each VEN and up to three for each name, and in a preview or a dry run what preview-enforcement-change sends',
  },
  input,
  output: VenActionOutput,
  example: { workloads: ['payments-db-1'], status: 'suspended', dry_run: true },
  boundTo: (args, ctx) => boundTo(ctx, callOf(args)),
  preview: (args, ctx) => preview(ctx, callOf(args)),
  plan: (args, ctx) => requestsOf(ctx, callOf(args)),
  handler: (args, ctx) => carryOut(ctx, callOf(args)),
})
