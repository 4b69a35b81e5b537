import type { Identity, Role } from '../../schemas/caller.js'
import type { Method } from './check-request.js'
import type { SessionData } from './login/browser-session.js'
import type { Visit } from './ports.js'

/** Hooks of a route, in the words of the web framework. */
interface Hooks<Request, Reply> {
  onRequest: (request: Request, reply: Reply) => Promise<unknown>
  preHandler?: (request: Request, reply: Reply, next: () => void) => void
}

/** What is let in at a page. */
export interface Admission<Request, Reply> {
  /** Takes bearer tokens as well; absent, only somebody who has logged in with this browser is known. */
  authenticate?: (request: Request, reply: Reply) => Promise<Identity>
  /** The page that the login and refusals lead back to, without the base path. */
  pageOf: (request: Request) => string
}

/** What the doors of this room have from the one at its front. `Request` and `Reply` are the web framework's. */
export interface Porter<Request, Reply> {
  /** Path in front of every link, where a proxy serves this server under one. */
  basePath: string
  /** Of the login, base path included; null where there is none. */
  loginPath: string | null
  now: () => number
  roleOf: (identity: Identity) => Role | null
  /** For pages: whoever is not known is sent to the login. For forms: is refused, as is a form that is not of a page of ours. */
  readonly admit: (admission: Admission<Request, Reply>) => { page: Hooks<Request, Reply>; form: Hooks<Request, Reply> }
  /** Whose request an admitted one is. */
  readonly visitOf: (request: Request) => Visit
  /** Whether it comes from no browser: a form then needs no CSRF token. */
  readonly isProgram: (request: Request) => boolean
  readonly dataOf: (request: Request) => SessionData
  /** For the forms of a page for this person. */
  readonly csrfTokenFor: (identity: Identity, reply: Reply) => string
  readonly sendPage: (reply: Reply, page: string) => Reply
  /** The page that a refusal of this request leads back to. */
  readonly leadBackTo: (request: Request, page: string) => void
  /** Answers 405 to all other methods. */
  readonly refuseOtherMethods: (methods: Readonly<Record<string, readonly Method[]>>) => void
}
