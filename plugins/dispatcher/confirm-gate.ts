import type { ConfirmPort } from '../../schemas/confirmations.js'
import type { Gate } from './admit-call.js'
import { findBinding, look } from './look-ahead.js'

/**
 * Creates the gate for tools that need confirmation. It previews what the call would do, and leaves everything else to
 * the configured way of asking people (see plugins/confirm/README.md).
 */
export const confirmGate = (confirmation: ConfirmPort): Gate => ({
  name: 'confirm',
  needs: 'arguments',
  onlyConfirmed: true,
  async check(subject) {
    const ahead = { look: (isForPage: boolean) => look(subject, isForPage), findBinding: () => findBinding(subject) }
    subject.approve(await confirmation.admit({ ...subject, ...ahead }))
  },
})
