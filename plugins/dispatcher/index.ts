import fp from 'fastify-plugin'
import { createDispatcher, type Dispatcher, type DispatcherOptions } from './dispatch.js'

declare module 'fastify' {
  interface FastifyInstance {
    dispatcher: Dispatcher
  }
}

/** Makes the dispatcher available to the routes as `app.dispatcher`. Closing the app waits for the running calls. */
export default fp<DispatcherOptions>(
  (app, options, done) => {
    app.decorate('dispatcher', createDispatcher(options))
    app.addHook('onClose', async (instance) => {
      await instance.dispatcher.idle()
      instance.dispatcher.audit?.close()
    })
    done()
  },
  { name: 'dispatcher' },
)
