/** Entry `context-compactor/redis`: sessions in Redis. It brings no client: that is the app's. */

export { redisStore, type RedisStoreOptions } from "../store/redis/store.js";
export type { IoRedisClient, NodeRedisClient } from "../store/redis/client.js";
