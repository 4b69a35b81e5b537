import { Type } from '@sinclair/typebox'

/** Body of `GET /healthz` (S5). */
export const Liveness = Type.Object({ status: Type.Literal('ok') })

/**
 * Body of `GET /readyz`: 200 with `ready`; 503 with `draining` once the process has been told to stop, or `unavailable` while
 * something it needs does not work.
 */
export const Readiness = Type.Object({
  status: Type.Union([Type.Literal('ready'), Type.Literal('draining'), Type.Literal('unavailable')]),
})
