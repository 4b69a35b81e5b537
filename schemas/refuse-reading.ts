import { ToolError } from './errors.js'

/** Returns the error for a question that a caller with limited reading may not ask. */
export const refuseReading = (message: string, scopes: readonly string[]): ToolError =>
  new ToolError(
    'out_of_scope',
    message,
    { rule: 'reads', scopes: [...scopes] },
    { hint: 'Ask the operator for wider reading, or somebody who has it.' },
  )
