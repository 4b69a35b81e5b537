import { Type } from '@sinclair/typebox'

/** The `dry_run` argument of every tool that can show its plan without carrying it out (D3). */
export const DryRunInput = {
  dry_run: Type.Optional(Type.Boolean({ description: 'No write' })),
}

/**
 * The digest to which the confirmation of a dry run is bound. It is constant: a dry run writes nothing, so its
 * confirmation stays valid even if something changes in the meantime (D75).
 */
export const DRY_RUN_BINDING = 'dry run'

/**
 * A request to the PCE as it would be sent: the path below /api/v2, and the JSON body. Braces stand for parts that the
 * PCE would assign only when the call runs.
 */
export interface PlannedRequest {
  method: string
  path: string
  body: unknown
}

/**
 * The output schema of a planned request. Its fields are named only in a description, since nearly half of the tools
 * have this schema, and the list of tools takes up space in every conversation.
 */
const PlannedRequestOut = Type.Unsafe<PlannedRequest>({ type: 'object' })

/**
 * The fields that a dry run adds to an answer. They are optional, so that one output schema covers real runs and dry
 * runs.
 */
export const DryRunOutput = {
  dry_run: Type.Optional(Type.Boolean({ description: 'Nothing was written' })),
  requests: Type.Optional(
    Type.Array(PlannedRequestOut, { description: 'What a real call would send, each as {method, path, body}' }),
  ),
}
