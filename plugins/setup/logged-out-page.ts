import { renderMessagePage } from './message-page.js'

/** The session here is over; the one at the identity provider is not ours to end, so the next login asks for the password. */
export const renderLoggedOutPage = (basePath: string, canLogIn: boolean): string =>
  renderMessagePage({
    title: 'You are logged out',
    text: 'This page no longer knows you. At your identity provider you may still be logged in.',
    ...(canLogIn && { link: { href: `${basePath}/setup/login?again=1`, label: 'Log in again' } }),
  })
