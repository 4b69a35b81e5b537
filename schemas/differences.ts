import { Type } from '@sinclair/typebox'

/** What the PCE dropped or changed of what was sent, found by reading it back. */
export const DifferencesOut = Type.Optional(
  Type.Array(
    Type.Object({
      field: Type.String({ description: 'Field' }),
      sent: Type.Unknown({ description: 'As sent' }),
      stored: Type.Unknown({ description: 'As stored' }),
    }),
    { description: 'Fields the PCE stored otherwise than sent' },
  ),
)
