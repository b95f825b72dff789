# docker build -t bayes-runner .
# docker run --rm -v "$PWD/outputs:/work/outputs" bayes-runner +experiment=digits_fgsm smoke=true
FROM python:3.11-slim

# git: a record says which commit made it, where there is one.
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/bayes-runner
COPY requirements.lock pyproject.toml README.md LICENSE ./
# torch first, built for CPU: a plain install would bring CUDA packages of several GB.  For a GPU leave the index out.
# EXTRAS=[all]: searches, launchers and MLflow's pages too (docker build --build-arg EXTRAS=[all] …).
ARG EXTRAS=
# a file of constraints with hashes would ask for a hash of every package
RUN grep -oE '^[a-z0-9.-]+==[^ ;]+' requirements.lock > /tmp/constraints.txt \
    && pip install --no-cache-dir -c /tmp/constraints.txt --extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0
COPY runner runner
COPY components components
COPY conf conf
COPY hydra_plugins hydra_plugins
RUN pip install --no-cache-dir -c /tmp/constraints.txt ".$EXTRAS"

# Nobody's records belong to root.
RUN useradd --create-home runner && mkdir -p /work/outputs /work/data && chown -R runner /work
USER runner
WORKDIR /work
ENV RUNNER_DATA_DIR=/work/data OMP_NUM_THREADS=1
ENTRYPOINT ["runner"]
CMD ["--help"]
