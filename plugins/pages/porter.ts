import type { Identity, Role } from '../../schemas/caller.js'
import type { Method } from './check-request.js'
import type { SessionData } from './login/browser-session.js'
import type { Visit } from './ports.js'

/** The hooks of a route, in the form that the web framework expects. */
interface Hooks<Request, Reply> {
  onRequest: (request: Request, reply: Reply) => Promise<unknown>
  preHandler?: (request: Request, reply: Reply, next: () => void) => void
}

/** The rules by which visitors are admitted to one page. */
export interface Admission<Request, Reply> {
  /** Identifies the sender of a bearer token. If it is absent, only browser logins are accepted. */
  authenticate?: (request: Request, reply: Reply) => Promise<Identity>
  /**
   * Returns the path of the page that an error page links to, and that a login redirects to afterwards. It does not
   * include the base path.
   */
  pageOf: (request: Request) => string
}

/**
 * The functions and facts with which the surrounding plugin supports the pages. `Request` and `Reply` are types of the
 * web framework.
 */
export interface Porter<Request, Reply> {
  /** The path prefix of every link, for a proxy that serves this server below a path. */
  basePath: string
  /** The path of the login, with the base path; null if there is no login. */
  loginPath: string | null
  now: () => number
  roleOf: (identity: Identity) => Role | null
  /**
   * Returns the hooks that admit visitors. Unknown visitors of a page are sent to the login. A form is refused if its
   * sender is unknown, or if it does not come from a page of this server.
   */
  readonly admit: (admission: Admission<Request, Reply>) => { page: Hooks<Request, Reply>; form: Hooks<Request, Reply> }
  /** Returns the visitor whose request was admitted. */
  readonly visitOf: (request: Request) => Visit
  /** Returns true if the request comes from a program and not from a browser. Its form then needs no CSRF token. */
  readonly isProgram: (request: Request) => boolean
  readonly dataOf: (request: Request) => SessionData
  /** Returns the CSRF token for the forms that a page shows to this person. */
  readonly csrfTokenFor: (identity: Identity, reply: Reply) => string
  readonly sendPage: (reply: Reply, page: string) => Reply
  /** Sets the path of the page to which an error page for this request links. */
  readonly leadBackTo: (request: Request, page: string) => void
  /** Makes each path in `methods` answer 405 to every method that is not listed for this path. */
  readonly refuseOtherMethods: (methods: Readonly<Record<string, readonly Method[]>>) => void
}
