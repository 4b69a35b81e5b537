import { Type, type Static } from '@sinclair/typebox'

/** Why an action on many objects was not done to some of them; the PCE answers 200 all the same (P32). */
export const ActionError = Type.Object({
  token: Type.String(),
  message: Type.String(),
  /** The objects in question; empty where the PCE named none. */
  hrefs: Type.Array(Type.String()),
})
export type ActionError = Static<typeof ActionError>

/** What a VEN's firewall does once it is unpaired: as before the pairing, what the PCE recommends, or nothing. */
export type FirewallRestore = 'saved' | 'default' | 'disable'
