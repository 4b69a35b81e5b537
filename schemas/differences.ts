import { Type } from '@sinclair/typebox'

/** What the PCE dropped or changed of what was sent, found by reading it back. */
export const DifferencesOut = Type.Optional(
  Type.Array(
    Type.Object({
      field: Type.String(),
      sent: Type.Unknown(),
      stored: Type.Unknown(),
    }),
    { description: 'Stored otherwise than sent' },
  ),
)
