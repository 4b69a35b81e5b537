import { Type, type Static } from '@sinclair/typebox'

/**
 * Body of `GET /readyz`. `ready` is sent with status 200. With status 503, `draining` is sent after the process has been
 * told to stop, and `unavailable` while something that it needs does not work. `check` gives only the name of the failed
 * check, because anyone may request this route.
 */
export type HealthStatus =
  { status: 'ready'; pce?: string } | { status: 'draining' } | { status: 'unavailable'; check: string }

/** A check of one thing that must work before the process accepts calls. */
export interface HealthCheck {
  name: string
  /** Performs the check. Throws or rejects if the checked thing does not work at the moment. */
  run: () => void | Promise<void>
  /**
   * Returns the problem because of which calls are being refused at the moment, or null if there is none. It does not
   * query anything. A problem takes precedence over an earlier result of `run`, so that readiness and calls agree.
   */
  findProblem?: () => Error | null
}

/** Body of the answer to GET /.well-known/oauth-protected-resource (RFC 9728, 2). */
export interface ProtectedResource {
  resource: string
  authorization_servers: string[]
  scopes_supported: string[]
  bearer_methods_supported: 'header'[]
  resource_name: string
}

/**
 * Body of `POST /confirm` (S7), as given in `confirm.body` of the `confirm_required` answer. `challenge` identifies the
 * preview that was shown; it is present if the preview showed more than the arguments.
 */
export const ConfirmRequest = Type.Object(
  {
    tool: Type.String({ minLength: 1, maxLength: 128 }),
    params_hash: Type.String({ pattern: '^[0-9a-f]{64}$', description: '64 lowercase hex digits' }),
    challenge: Type.Optional(Type.String({ pattern: '^[0-9a-f]{64}$', description: '64 lowercase hex digits' })),
  },
  { additionalProperties: false },
)
export type ConfirmRequest = Static<typeof ConfirmRequest>

/** Answer of `POST /confirm`. The unit of `expires_in` is seconds. */
export interface ConfirmResponse {
  confirm_token: string
  expires_in: number
}
