import type { Identity, Role } from '../../schemas/caller.js'
import type { Method } from './check-request.js'
import type { SessionData } from './login/browser-session.js'
import type { Visit } from './ports.js'

/** The hooks of a route, in the form that the web framework expects. */
interface Hooks<Request, Reply> {
  onRequest: (request: Request, reply: Reply) => Promise<unknown>
  preHandler?: (request: Request, reply: Reply, next: () => void) => void
}

/** Who may visit a page. */
export interface Admission<Request, Reply> {
  /** Identifies the sender of a bearer token. If absent, only browser logins count. */
  authenticate?: (request: Request, reply: Reply) => Promise<Identity>
  /** The page that the login and refusals lead back to, without the base path. */
  pageOf: (request: Request) => string
}

/** What the pages get from the plugin that contains them. `Request` and `Reply` are types of the web framework. */
export interface Porter<Request, Reply> {
  /** The path prefix of every link, for a proxy that serves this server below a path. */
  basePath: string
  /** The path of the login, with the base path; null if there is no login. */
  loginPath: string | null
  now: () => number
  roleOf: (identity: Identity) => Role | null
  /**
   * Hooks that admit visitors. Unknown visitors of a page are sent to the login. A form is refused if its sender is
   * unknown or if it does not come from a page of this server.
   */
  readonly admit: (admission: Admission<Request, Reply>) => { page: Hooks<Request, Reply>; form: Hooks<Request, Reply> }
  /** Returns the visitor of an admitted request. */
  readonly visitOf: (request: Request) => Visit
  /** Whether the request does not come from a browser; a form then needs no CSRF token. */
  readonly isProgram: (request: Request) => boolean
  readonly dataOf: (request: Request) => SessionData
  /** Returns the CSRF token for the forms of a page for this person. */
  readonly csrfTokenFor: (identity: Identity, reply: Reply) => string
  readonly sendPage: (reply: Reply, page: string) => Reply
  /** Sets the page that a refusal of this request links back to. */
  readonly leadBackTo: (request: Request, page: string) => void
  /** Answers all other methods of these paths with 405. */
  readonly refuseOtherMethods: (methods: Readonly<Record<string, readonly Method[]>>) => void
}
