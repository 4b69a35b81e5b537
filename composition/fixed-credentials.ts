import { ToolError, type ErrorCode } from '../schemas/errors.js'
import type { CredentialsPort } from '../schemas/credentials.js'

/** The credentials port where there is no keystore: one PCE for everybody, or none. `refusal` answers whoever wants to change that. */
export function fixedCredentials(
  registered: boolean,
  message: string,
  refusal: { code: ErrorCode; message: string },
): CredentialsPort {
  const refuse = () => Promise.reject(new ToolError(refusal.code, refusal.message))
  return { status: () => Promise.resolve({ registered, message }), register: refuse, remove: refuse }
}
