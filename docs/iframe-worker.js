// A page that is opened from disk may start no worker: what searches runs in a hidden frame there.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe");
    #ready;

    constructor(url) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) => Promise.all(urls.map((each) => this.#load(each)));
      this.#ready = this.#load(url);
    }

    #load(url) {
      return new Promise((done, failed) => {
        const script = Object.assign(document.createElement("script"), { src: url });
        script.onload = done;
        script.onerror = failed;
        this.#frame.contentDocument.head.append(script);
      });
    }

    postMessage(data) {
      const inside = this.#frame.contentWindow;
      void this.#ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
  };
