import { html } from 'ghtml'
import { STYLE_ELEMENT } from './style.js'

const SHIELD =
  'M12 2 4 5v6c0 5 3.4 9.3 8 11 4.6-1.7 8-6 8-11V5l-8-3Zm-1.2 13.6-3.4-3.4 1.4-1.4 2 2 4.4-4.4 1.4 1.4-5.8 5.8Z'
const ICON = `data:image/svg+xml,${encodeURIComponent(
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path fill="#0b5c7a" d="${SHIELD}"/></svg>`,
)}`

interface Page {
  title: string
  /** The main content of the page, as HTML. */
  body: string
  /** The HTML at the right end of the bar at the top of the page. */
  corner?: string
  /** The HTML of forms whose buttons are elsewhere on the page. It comes after all visible content. */
  forms?: string
  /** True if the content needs more width than a form. */
  isWide?: boolean
}

/** The button in the top bar that logs the person out; it submits the form with the id `logout-form`. */
export const LOGOUT_BUTTON = '<button class="quiet" type="submit" form="logout-form">Log out</button>'

/**
 * Builds a complete page. The page's own referrer policy lets the browser name this server's origin in requests to this
 * server. With the policy `no-referrer` from the response headers, the browser would send `Origin: null` with every
 * form (Fetch, append a request Origin header), and the origin guard would have to refuse the form.
 */
export function layOut({ title, body, corner = '', forms = '', isWide = false }: Page): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>${title} – svc-mcp</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="referrer" content="same-origin" />
        <meta name="robots" content="noindex" />
        <link rel="icon" href="${ICON}" />
        !${STYLE_ELEMENT}
      </head>
      <body!${isWide ? ' class="wide"' : ''}>
        <a class="skip" href="#main">Skip to content</a>
        <header class="top">
          <div class="bar">
            <svg viewBox="0 0 24 24" aria-hidden="true" focusable="false">
              <path fill="currentColor" d="${SHIELD}" />
            </svg>
            <b>svc-mcp</b>
            !${corner}
          </div>
        </header>
        <main id="main" tabindex="-1">!${body}</main>
        !${forms}
      </body>
    </html> `
}

/**
 * A message at the top of a page. It must be short, because it travels in the session cookie from a form to the next
 * page.
 */
export interface Notice {
  kind: 'good' | 'warning' | 'bad'
  title: string
  text: string
}

/**
 * Renders a notice that takes the focus, so that it is seen and read aloud first. Without scripts, only the `autofocus`
 * attribute can do this. `more` is HTML that is appended.
 */
export const renderNotice = ({ kind, title, text }: Notice, more = ''): string =>
  html` <div class="notice ${kind}" role="${kind === 'good' ? 'status' : 'alert'}" tabindex="-1" autofocus>
    <h2>${title}</h2>
    !${text === '' ? '' : html`<p>${text}</p>`} !${more}
  </div>`

interface MessagePage {
  title: string
  text: string
  hint?: string
  /** The error code, which a person can quote to support. */
  code?: string
  requestId?: string
  /** The link to a page on which the person can continue. */
  link?: { href: string; label: string }
}

/** Renders a page with a single message: an error, or the confirmation of a logout. */
export const renderMessagePage = ({ title, text, hint, code, requestId, link }: MessagePage): string =>
  layOut({
    title,
    body: html`<div class="card">
      <h1>${title}</h1>
      <p>${text}</p>
      !${hint === undefined ? '' : html`<p>${hint}</p>`}
      !${
        link === undefined
          ? ''
          : html`<div class="buttons"><a class="button primary" href="${link.href}">${link.label}</a></div>`
      }
      !${
        code === undefined
          ? ''
          : html`<p class="foot">Error <code>${code}</code>, request <code>${requestId ?? ''}</code></p>`
      }
    </div>`,
  })

/**
 * Renders the page after a logout. Only the session with this server has ended, because the server cannot end the
 * session at the identity provider. The link to the next login therefore makes the identity provider ask for the
 * password instead of logging the person in silently. `loginPath` is null if there is no browser login. After that
 * login, the browser is redirected to the page `backTo` or, if it is absent, to the server's home page (`HomePage`).
 */
export const renderLoggedOutPage = (loginPath: string | null, backTo?: string): string =>
  renderMessagePage({
    title: 'You are logged out',
    text: 'You may still be logged in at your identity provider.',
    ...(loginPath !== null && {
      link: { href: `${loginPath}?again=1${backTo === undefined ? '' : `&to=${backTo}`}`, label: 'Log in again' },
    }),
  })
