import { Type, type Static } from '@sinclair/typebox'

/**
 * Body of `POST /confirm` (S7), as `confirm.body` of the confirm_required answer gave it. `challenge` stands there where more was
 * shown than the arguments say, and names what was shown.
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

/** Its answer. `expires_in` in seconds. */
export const ConfirmResponse = Type.Object(
  { confirm_token: Type.String(), expires_in: Type.Integer({ minimum: 1 }) },
  { additionalProperties: false },
)
export type ConfirmResponse = Static<typeof ConfirmResponse>
