import { html } from 'ghtml'
import { layOut } from './page-layout.js'

export interface MessagePage {
  title: string
  text: string
  hint?: string
  /** A machine-readable code, for whoever is asked for help. */
  code?: string
  requestId?: string
  /** Where to go from here. */
  link?: { href: string; label: string }
}

/** A page that says one thing: an error, or good-bye. */
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
