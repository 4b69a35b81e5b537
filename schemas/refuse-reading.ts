import { ToolError } from './errors.js'

/** Returns the refusal of a question that a caller whose reading is limited may not ask. It is not about writing. */
export const refuseReading = (message: string, scopes: readonly string[]): ToolError =>
  new ToolError(
    'out_of_scope',
    message,
    { rule: 'reads', scopes: [...scopes] },
    { hint: 'Ask the operator for wider reading, or somebody who has it.' },
  )
