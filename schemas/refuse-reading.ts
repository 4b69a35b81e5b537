import { ToolError } from './errors.js'

/** Returns the error for a question that is refused because the caller may read only parts of the PCE. */
export const refuseReading = (message: string, scopes: readonly string[]): ToolError =>
  new ToolError(
    'out_of_scope',
    message,
    { rule: 'reads', scopes: [...scopes] },
    { hint: 'Ask the operator for wider reading, or somebody who has it.' },
  )
