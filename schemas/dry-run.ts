import { Type, type Static } from '@sinclair/typebox'

/** The switch of every tool that can show its plan (D3). */
export const DryRunInput = {
  dry_run: Type.Optional(Type.Boolean({ description: 'Plan only' })),
}

/** What a confirmed dry run is bound to: it writes nothing, so nothing that moves meanwhile makes it another one (D75). */
export const DRY_RUN_BINDING = 'dry run'

/** A request as it would be sent: the path below /api/v2, and the JSON body. A part the PCE has yet to name stands in braces. */
export const PlannedRequest = Type.Object({
  method: Type.String(),
  path: Type.String(),
  body: Type.Unknown(),
})
export type PlannedRequest = Static<typeof PlannedRequest>

/** What a dry run answers; optional, so that one output schema covers both outcomes. */
export const DryRunOutput = {
  dry_run: Type.Optional(Type.Boolean({ description: 'Nothing was written' })),
  requests: Type.Optional(Type.Array(PlannedRequest, { description: 'What a real call would send' })),
}
